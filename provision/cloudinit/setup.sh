#!/bin/sh
# Gets this machine ready for the agent. Safe to run again at any time.
#   {{.Short}}-setup                 install Docker, if it is missing
#   {{.Short}}-setup pull IMAGE      fetch an image, if it is missing
#   {{.Short}}-setup block-metadata  keep containers from the cloud's metadata
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL=C DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
url={{.InstallURL}}
state=/var/lib/{{.Short}}
work=

# One line per step; on the console the provider can show it.
say() {
  echo "{{.Short}}-setup: $*"
  { echo "{{.Short}}-setup: $*" >/dev/console; } 2>/dev/null || :
}

ready() { timeout 20 docker info >/dev/null 2>&1; }

# Starts Docker, if it is there, and waits up to a minute for it.
start() {
  command -v dockerd >/dev/null || return
  systemctl enable --now docker.service >/dev/null 2>&1
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    ready && return
    sleep 3
  done
  return 1
}

# apt is to wait for others' locks, and to ask nothing: in this run alone. And
# a power cut may have left packages half installed.
repair() {
  [ -n "$work" ] || work=$(mktemp -d) || exit 73
  trap 'rm -rf "$work"' EXIT
  command -v apt-get >/dev/null || return 0
  chmod 755 "$work" # apt's helpers are not root
  cat >"$work/apt.conf" <<'END'
DPkg::Lock::Timeout "300";
Acquire::Retries "5";
Dpkg::Options { "--force-confdef"; "--force-confold"; };
END
  export APT_CONFIG="$work/apt.conf"
  timeout 300 dpkg --force-confdef --force-confold --configure -a
}

from_apt() {
  apt-get -q update # a broken third list is no reason to stop
  apt-get -q -y --no-install-recommends install "$@"
}

from_script() {
  command -v curl >/dev/null || from_apt curl ca-certificates || return
  case $url in https:*) by='=https' ;; *) by='=http,https' ;; esac
  rm -f "$work/docker.sh"
  curl -fsSL --proto "$by" --proto-redir "$by" --retry 3 --retry-delay 3 \
    --connect-timeout 10 --max-time 120 -o "$work/docker.sh" "$url" || return
  # A portal's page or half a script must not run.
  [ "$(head -c 2 "$work/docker.sh")" = '#!' ] && sh -n "$work/docker.sh" || return 65
  timeout -k 30 900 sh "$work/docker.sh"
}

install_docker() {
  ready && { say 'docker: ok, runs already'; return; }
  repair
  start && { say 'docker: ok, started'; return; }
  try=0
  for pause in 5 10 20 40 60 60 60 60; do
    try=$((try + 1))
    say "docker: installing, try $try"
    from_script
    code=$?
    start && { say "docker: ok, by the install script (it ended with $code)"; return; }
    say "docker: the install script failed with $code"
    repair
    if [ "$try" -ge 3 ] && command -v apt-get >/dev/null; then
      from_apt docker.io
      code=$?
      start && { say 'docker: ok, by the package docker.io'; return; }
      say "docker: the package docker.io failed with $code"
    fi
    sleep "$pause"
  done
  say 'docker: failed; the next try follows'
  return 1
}

# Docker only recommends this package, and runs nothing without it where the
# kernel has AppArmor.
apparmor() {
  grep -qs Y /sys/module/apparmor/parameters/enabled || return 0
  command -v apparmor_parser >/dev/null || ! command -v apt-get >/dev/null && return
  repair
  from_apt apparmor
  say "apparmor: installing it ended with $?"
}

pull() {
  for pause in 5 15 30 60 60 60; do
    docker image inspect "$1" >/dev/null 2>&1 && { say 'image: ok, is there'; return; }
    say 'image: pulling'
    timeout 1800 docker pull -q "$1" && { say 'image: ok, pulled'; return; }
    say "image: the pull failed with $?"
    sleep "$pause"
  done
  return 1
}

# No new TCP connection but DNS, which is at the same address in some clouds.
# Docker keeps what it finds in DOCKER-USER, and jumps there first.
block() {
  "$1" -w 10 -N DOCKER-USER 2>/dev/null
  "$1" -w 10 -C FORWARD -j DOCKER-USER 2>/dev/null || "$1" -w 10 -I FORWARD -j DOCKER-USER
  set -- "$1" DOCKER-USER -d "$2" -p tcp --syn ! --dport 53 -j REJECT --reject-with tcp-reset
  tool=$1
  shift
  "$tool" -w 10 -C "$@" 2>/dev/null || "$tool" -w 10 -I "$@"
}

block_all() {
  block iptables 169.254.169.254 && block iptables 168.63.129.16 || return
  [ -e /proc/net/if_inet6 ] || return 0 # nothing to keep away
  block ip6tables fd00:ec2::254 && block ip6tables fd20:ce::254
}

block_metadata() {
  block_all && { say 'metadata: ok, kept from containers'; return; }
  say 'metadata: failed, containers can read it'
  return 1
}

case ${1-} in
'')
  # Reached, so all files are there: no boot needs to write them again.
  mkdir -p "$state" && sync && : >"$state/started"
  install_docker || exit
  apparmor
  systemctl start --no-block {{.Short}}-metadata.service
  ;;
pull) pull "$2" ;;
block-metadata) block_metadata ;;
*) exit 64 ;;
esac
