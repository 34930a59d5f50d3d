# Hetzner's own client: list, create, describe, use, delete.
expect() { # COMMAND... : the last argument must be in what it prints
  local want=${*: -1} got
  got=$("${@:1:$#-1}" 2>&1) || { echo "failed: ${*:1:$#-1}: $got" >&2; exit 1; }
  [[ $got == *"$want"* ]] || { echo "no \"$want\" from: ${*:1:$#-1}: $got" >&2; exit 1; }
}
refuse() { # COMMAND... : must fail and say the last argument
  local want=${*: -1} got
  ! got=$("${@:1:$#-1}" 2>&1) || { echo "went well: ${*:1:$#-1}" >&2; exit 1; }
  [[ $got == *"$want"* ]] || { echo "no \"$want\" from: ${*:1:$#-1}: $got" >&2; exit 1; }
}

expect hcloud location list fsn1
expect hcloud server-type list cx23
expect hcloud image list --type system ubuntu-24.04
expect hcloud firewall create --name closed created
printf '#cloud-config\nruncmd: [[echo, hello]]\n' >"$HOME/user-data"
expect hcloud server create --name web-1 --type cx23 --image ubuntu-24.04 --location fsn1 --label app=web \
  --firewall closed --user-data-from-file "$HOME/user-data" 'IPv4: 198.18.'
expect hcloud server list -l app=web -o noheader -o columns=name,status 'web-1   running'
expect hcloud server describe web-1 'app: web'
expect hcloud firewall describe closed web-1
expect hcloud primary-ip list web-1
expect hcloud server reboot web-1 rebooted
expect hcloud server add-label web-1 more=yes added
refuse hcloud server create --name web-1 --type cx23 --image ubuntu-24.04 'uniqueness_error'
refuse hcloud server create --name web-2 --type cx22 --image ubuntu-24.04 'invalid_server_type'
HCLOUD_TOKEN=readonly refuse hcloud server create --name web-2 --type cx23 --image ubuntu-24.04 forbidden
HCLOUD_TOKEN=invalid refuse hcloud server list 'unauthorized'
expect hcloud server enable-protection web-1 delete rebuild enabled
refuse hcloud server delete web-1 protected
expect hcloud server disable-protection web-1 delete rebuild disabled
expect hcloud volume create --name data --size 10 --server web-1 created
refuse hcloud volume delete data resource_in_use
expect hcloud server delete web-1 deleted
for _ in $(seq 50); do # this client does not wait for the end
  hcloud server describe web-1 >/dev/null 2>&1 || break
  sleep 0.1
done
refuse hcloud server describe web-1 'erver not found'
expect hcloud volume delete data deleted
expect hcloud firewall delete closed deleted
