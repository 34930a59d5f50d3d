package provision

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"
)

// Create: the virtual machine.

// machineOf is the whole description of the server. Nothing in it can be
// read back but what is meant to be: custom data is write-only.
func (a *Azure) machineOf(ctx context.Context, opts CreateOpts, id identity, names azNames, sku azSku) (azVM, error) {
	if err := a.fits("create server", sku, opts); err != nil {
		return azVM{}, err
	}
	keys, err := a.sshKeys(ctx, opts.SSHKeys)
	if err != nil {
		return azVM{}, err
	}
	data, err := azCustomData(opts.UserData)
	if err != nil {
		return azVM{}, invalidError("azure", "create server", "%v", err)
	}
	image, err := azImageOf(opts.Image)
	if err != nil {
		return azVM{}, invalidError("azure", "create server", "%v", err)
	}
	vm := azVM{azHead: azHead{Location: opts.Region, Tags: a.vmTags(opts, id, names)}}
	p := &vm.Properties
	p.Hardware.VMSize = sku.Name
	if image == nil {
		image = sku.ubuntu()
		if sku.trustedLaunch() {
			p.Security = &azSecurity{Type: "TrustedLaunch", UEFI: azUEFI{SecureBoot: true, VTPM: true}}
		}
	}
	p.Storage.Image = image
	p.Storage.Disk = azOSDisk{
		Name: names.disk, CreateOption: "FromImage", Caching: "ReadWrite", DeleteOption: "Delete",
		SizeGB: azureDiskGB, Managed: &azManagedDisk{StorageType: "StandardSSD_LRS"},
	}
	if opts.DiskGB != 0 {
		p.Storage.Disk.SizeGB = opts.DiskGB
	}
	p.OS = azOS{
		ComputerName: opts.Name, AdminUsername: azureUser, CustomData: data,
		Linux: &azLinux{NoPassword: true, Agent: true, SSH: azSSH{PublicKeys: keys}},
	}
	nic := azVMInterface{ID: a.networkPath("networkInterfaces", names.nic)}
	nic.Properties.Primary, nic.Properties.DeleteOption = true, "Delete"
	p.Network.Interfaces = []azVMInterface{nic}
	p.Diagnostics.Boot.Enabled = true
	return vm, nil
}

// vmTags are the server's labels. Azure puts them on its disk, too.
func (a *Azure) vmTags(opts CreateOpts, id identity, names azNames) map[string]string {
	tags := maps.Clone(a.labels.own(opts, id))
	tags[a.labels.key(labelServer)] = names.vm
	tags[a.labels.key(labelCreated)] = timeTag(time.Now())
	return tags
}

func (a *Azure) fits(op string, sku azSku, opts CreateOpts) error {
	if opts.Architecture != "" && opts.Architecture != sku.architecture() {
		return a.fail(ErrInvalid, op, "leave the architecture out, or choose a size that has it",
			"size %q is %s, asked for was %s", sku.Name, sku.architecture(), opts.Architecture)
	}
	return nil
}

// ubuntu is the default image that starts on the size.
func (s azSku) ubuntu() *azImage {
	image := &azImage{Publisher: "Canonical", Offer: "ubuntu-24_04-lts", Sku: "server", Version: "latest"}
	switch {
	case s.architecture() == "arm":
		image.Sku = "server-arm64"
	case !s.secondGeneration():
		image.Sku = "server-gen1"
	}
	return image
}

// azImageOf reads CreateOpts.Image; nil is the default one.
func azImageOf(text string) (*azImage, error) {
	if text == "" {
		return nil, nil
	}
	if err := checkWord("image", text); err != nil {
		return nil, err
	}
	if strings.HasPrefix(text, "/") {
		return &azImage{ID: text}, nil
	}
	parts := strings.Split(text, ":")
	if len(parts) == 4 && parts[0] != "" && parts[1] != "" && parts[2] != "" && parts[3] != "" {
		return &azImage{Publisher: parts[0], Offer: parts[1], Sku: parts[2], Version: parts[3]}, nil
	}
	return nil, errors.New("the image is neither publisher:offer:sku:version, as az vm image list prints it, nor the id of an image, which begins with a slash")
}
