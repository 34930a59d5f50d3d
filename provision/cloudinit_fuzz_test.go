package provision

import (
	"errors"
	"strings"
	"testing"
)

// FuzzRenderCloudInit: whatever the parameters, there is an error that tells
// the field and not the token, or a document that reads as intended.
func FuzzRenderCloudInit(f *testing.F) {
	for _, p := range cloudInitSets() {
		f.Add(p.ControlPlaneAddr, p.JoinToken, p.CAFingerprint, p.NodeName, p.AgentImage, p.AgentVersion, p.MeshEnabled, p.DockerInstallURL, p.ShortName)
	}
	for i, part := range hostileParts {
		f.Add("cp"+part+":1", testToken+part, part, "web"+part, "agent"+part, "v1"+part, i%2 == 0, "https://h/"+part, "a"+part)
	}
	f.Fuzz(func(t *testing.T, addr, token, pin, name, image, version string, mesh bool, url, short string) {
		p := CloudInitParams{
			ControlPlaneAddr: addr, JoinToken: token, CAFingerprint: pin, NodeName: name, AgentImage: image,
			AgentVersion: version, MeshEnabled: mesh, DockerInstallURL: url, ShortName: short,
		}
		doc, err := RenderCloudInit(p)
		if err == nil {
			checkDocument(t, p, doc)
			return
		}
		if doc != "" {
			t.Error("an error comes with a document")
		}
		checkRefusal(t, "", p, err)
		var bad *paramError
		if !errors.As(err, &bad) || bad.field == "" {
			t.Errorf("%v names no parameter", err)
		}
	})
}

// FuzzCloudInitChecks: each check alone takes nothing that its alphabet does
// not have, which the fuzzer above reaches only when all fields are right.
func FuzzCloudInitChecks(f *testing.F) {
	for _, v := range validOf {
		f.Add(v)
		for _, part := range hostileParts {
			f.Add(v + part)
		}
	}
	checks := map[string]struct {
		check func(string) error
		signs string // beside letters and digits
	}{
		"ControlPlaneAddr": {checkControlPlaneAddr, ".-:[]/_~"},
		"CAFingerprint":    {checkFingerprint, ":"},
		"NodeName":         {checkHostName, ".-"},
		"AgentVersion":     {checkTag, "._-"},
		"AgentImage":       {checkImage, "._-:/@[]"},
		"DockerInstallURL": {checkInstallURL, "._~-/:[]?=&%+,"},
		"ShortName":        {checkNodeShortName, "-"},
	}
	f.Fuzz(func(t *testing.T, v string) {
		for field, c := range checks {
			if c.check(v) != nil {
				continue
			}
			for _, r := range v {
				plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
				if !plain && !strings.ContainsRune(c.signs, r) {
					t.Errorf("%s takes %q in %q", field, r, v)
				}
			}
			if strings.HasPrefix(v, "-") {
				t.Errorf("%s takes %q, which a command would read as an option", field, v)
			}
		}
	})
}
