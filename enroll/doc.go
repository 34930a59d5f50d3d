// Package enroll is how a machine joins a fleet: a certificate authority,
// one-time join tokens, a pinned fingerprint, and the three calls that a node
// makes (join, renew, heartbeat), both halves of each.
//
// The order of things on the node is the protection:
//
//  1. The node makes its own key, which never leaves it.
//  2. It opens TLS to the control plane and checks that the peer's chain ends
//     in the CA whose fingerprint it was given ([PinnedTLSConfig]). Before that
//     it sends nothing.
//  3. It sends its token and a certificate request ([Join]). The control plane
//     burns the token and signs the certificate in one transaction
//     ([Registry.Redeem]): a token works once, for one node, for a short time.
//     Whoever lost the answer may ask again with the same token and the same
//     key; another key is refused.
//  4. From then on it proves itself by its certificate ([SendHeartbeat],
//     [Renew]); the registry is asked at every call, so that a removed node is
//     refused at once.
//
// The fingerprint is "sha256:" and the hexadecimal SHA-256 of the CA's public
// key (its SubjectPublicKeyInfo in DER), so that a CA certificate can be
// renewed with the same key and keep it. In a shell:
//
//	openssl x509 -in ca.crt -noout -pubkey | openssl pkey -pubin -outform der | sha256sum
//
// The files in testdata/vectors fix the formats for other implementations.
package enroll
