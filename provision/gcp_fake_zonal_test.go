package provision_test

import (
	"encoding/base64"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

func mustBase64(s string) []byte {
	data, _ := base64.RawURLEncoding.DecodeString(s)
	return data
}

func (f *gcpFake) zonal(w *httptest.ResponseRecorder, r *http.Request, zone, kind, name string, body map[string]any) {
	key := zone + "/" + name
	switch {
	case kind == "machineTypes" && name == "":
		f.reply(w, map[string]any{"items": gcpFakeTypes()})
	case kind == "machineTypes":
		for _, t := range gcpFakeTypes() {
			if t.(map[string]any)["name"] == name {
				f.reply(w, t)
				return
			}
		}
		f.fail(w, 404, "notFound", "The resource was not found")
	case kind == "operations":
		f.operations(w, r.URL.Query().Get("filter"), zone)
	case kind == "instances" && r.Method == http.MethodPost:
		f.insert(w, r.URL.Query().Get("requestId"), zone, body)
	case kind == "instances" && r.Method == http.MethodDelete && f.instances[key] != nil:
		if f.gone[key].IsZero() {
			f.gone[key] = time.Now().Add(20 * time.Second)
		}
		f.instances[key]["status"] = "STOPPING"
		f.reply(w, f.operation("delete", "zones/"+zone+"/instances/"+name, 20*time.Second, ""))
	case kind == "disks" && r.Method == http.MethodDelete && f.disks[key] != nil:
		delete(f.disks, key)
		f.reply(w, f.operation("delete", "zones/"+zone+"/disks/"+name, time.Second, ""))
	case kind == "instances" && f.instances[key] != nil && strings.HasSuffix(r.URL.Path, "/serialPort"):
		f.reply(w, map[string]any{"contents": "Linux"})
	case kind == "instances" && f.instances[key] != nil:
		f.reply(w, f.instances[key])
	case kind == "disks" && f.disks[key] != nil:
		f.reply(w, f.disks[key])
	default:
		f.fail(w, 404, "notFound", "The resource was not found")
	}
}

func (f *gcpFake) operations(w *httptest.ResponseRecorder, filter, zone string) {
	var list []any
	for _, o := range f.ops {
		link, _ := o["targetLink"].(string)
		_, name, ok := strings.Cut(link, "/instances/")
		if ok && strings.Contains(filter, "/zones/"+zone+"/instances/"+name+`"`) {
			list = append(list, o)
		}
	}
	f.reply(w, map[string]any{"items": list})
}

func (f *gcpFake) insert(w *httptest.ResponseRecorder, request, zone string, body map[string]any) {
	name, _ := body["name"].(string)
	key := zone + "/" + name
	if op := f.requests[request]; op != "" {
		f.reply(w, f.ops[op])
		return
	}
	if f.instances[key] != nil {
		f.fail(w, 409, "alreadyExists", "The resource already exists")
		return
	}
	late := f.lateReason
	f.lateReason = ""
	o := f.operation("insert", "zones/"+zone+"/instances/"+name, 8*time.Second, late)
	f.requests[request] = o["name"].(string)
	if late == "" {
		machine := maps.Clone(body)
		machine["zone"], machine["status"] = gcpFakeURL+"zones/"+zone, "PROVISIONING"
		machine["creationTimestamp"] = time.Now().Format(time.RFC3339)
		f.instances[key], f.made[key] = machine, time.Now()
	}
	init := body["disks"].([]any)[0].(map[string]any)["initializeParams"].(map[string]any)
	disk := map[string]any{"name": init["diskName"], "zone": gcpFakeURL + "zones/" + zone, "labels": init["labels"]}
	disk["creationTimestamp"] = time.Now().Format(time.RFC3339)
	if late == "" {
		disk["users"] = []any{gcpFakeURL + "zones/" + zone + "/instances/" + name}
	}
	f.disks[key] = disk
	f.reply(w, o)
}
