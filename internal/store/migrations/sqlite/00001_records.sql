-- +goose Up
-- Times are microseconds since 1970 in UTC; 0 is none.
CREATE TABLE accounts (
    name        TEXT PRIMARY KEY,
    provider    TEXT NOT NULL,
    endpoint    TEXT NOT NULL,
    source      TEXT NOT NULL,
    sealed      BLOB,
    created_at  BIGINT NOT NULL,
    last_error  TEXT NOT NULL DEFAULT '',
    observed_at BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE nodes (
    id              TEXT PRIMARY KEY,
    name            TEXT NOT NULL,
    account         TEXT NOT NULL,
    provider        TEXT NOT NULL,
    spec            TEXT NOT NULL,
    phase           TEXT NOT NULL,
    attempt         BIGINT NOT NULL,
    idempotency_key TEXT NOT NULL,
    create_sent_at  BIGINT NOT NULL,
    doubt           BIGINT NOT NULL,
    candidate       BIGINT NOT NULL,
    tries           BIGINT NOT NULL,
    boot            TEXT NOT NULL,
    server_id       TEXT NOT NULL,
    server_status   TEXT NOT NULL,
    ip_addr         TEXT NOT NULL,
    ipv6_addr       TEXT NOT NULL,
    region          TEXT NOT NULL,
    size            TEXT NOT NULL,
    listed_at       BIGINT NOT NULL,
    running_at      BIGINT NOT NULL,
    missing_since   BIGINT NOT NULL,
    misses          BIGINT NOT NULL,
    delete_sent_at  BIGINT NOT NULL,
    ended_at        BIGINT NOT NULL,
    reason          TEXT NOT NULL,
    server_gone     BIGINT NOT NULL,
    join_by         BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    joined_at       BIGINT NOT NULL,
    deleted_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    cert_serial     TEXT NOT NULL,
    prev_serial     TEXT NOT NULL,
    facts           TEXT NOT NULL,
    price_monthly   TEXT NOT NULL,
    currency        TEXT NOT NULL,
    version         BIGINT NOT NULL
);
CREATE UNIQUE INDEX nodes_live_name ON nodes (name) WHERE phase <> 'deleted';
CREATE INDEX nodes_account_phase ON nodes (account, phase);
CREATE INDEX nodes_phase ON nodes (phase);

-- The last sign of life, apart from the row: it changes often and means little.
CREATE TABLE seen (
    node_id TEXT PRIMARY KEY REFERENCES nodes (id),
    at      BIGINT NOT NULL
);

CREATE TABLE events (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    node_id TEXT NOT NULL REFERENCES nodes (id),
    node    TEXT NOT NULL,
    at      BIGINT NOT NULL,
    type    TEXT NOT NULL,
    phase   TEXT NOT NULL,
    message TEXT NOT NULL
);
CREATE INDEX events_node ON events (node_id, seq);

CREATE TABLE tokens (
    id          TEXT PRIMARY KEY,
    node_id     TEXT NOT NULL REFERENCES nodes (id),
    attempt     BIGINT NOT NULL,
    secret_hash TEXT NOT NULL,
    state       TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    used_at     BIGINT NOT NULL,
    key_hash    TEXT NOT NULL,
    misused_at  BIGINT NOT NULL
);
CREATE INDEX tokens_node ON tokens (node_id);

-- What failed creates left behind at a provider.
CREATE TABLE left_behind (
    account  TEXT NOT NULL,
    kind     TEXT NOT NULL,
    id       TEXT NOT NULL,
    node_id  TEXT NOT NULL,
    resource TEXT NOT NULL,
    at       BIGINT NOT NULL,
    PRIMARY KEY (account, kind, id)
);

-- When to look at what. ring counts how often it was set: a job of an earlier
-- ring does nothing. job is the one of this ring.
CREATE TABLE alarms (
    kind TEXT NOT NULL,
    id   TEXT NOT NULL,
    ring BIGINT NOT NULL,
    at   BIGINT NOT NULL,
    job  BIGINT NOT NULL,
    PRIMARY KEY (kind, id)
);

-- +goose Down
DROP TABLE alarms;
DROP TABLE left_behind;
DROP TABLE tokens;
DROP TABLE events;
DROP TABLE seen;
DROP TABLE nodes;
DROP TABLE accounts;
