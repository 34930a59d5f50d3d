package provision

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Create: the SSH key.

// awsCheckKeys holds EC2's rules: one key a server, of two types.
func awsCheckKeys(keys []string) error {
	if len(keys) > 1 {
		return errors.New("EC2 takes one SSH key for a server; put the others into the user-data (ssh_authorized_keys)")
	}
	for _, k := range keys {
		key, isText, err := parsePublicKey(k)
		if err != nil {
			return err
		}
		if isText && !strings.HasPrefix(key.text, "ssh-ed25519 ") && !strings.HasPrefix(key.text, "ssh-rsa ") {
			return errors.New("EC2 imports ed25519 and RSA keys only; put the other kinds into the user-data (ssh_authorized_keys)")
		}
	}
	return nil
}

// keyPair returns the name of the key pair of a create, empty for none. A
// public key is imported into the region when it is not there; it stays, and
// is shared by all servers that name it.
func (a *AWS) keyPair(ctx context.Context, region string, keys []string) (string, error) {
	if len(keys) == 0 {
		return "", nil
	}
	const op = "find the SSH key"
	key, isText, err := parsePublicKey(keys[0])
	if err != nil {
		return "", invalidError("aws", op, "%v", err)
	}
	name := keys[0]
	if isText {
		name = key.name(a.labels.short)
	}
	return a.keys.get(ctx, region+"/"+name, func(ctx context.Context) (string, error) {
		pair, found, err := a.findKey(ctx, op, region, name)
		switch {
		case err != nil:
			return "", err
		case !found && !isText:
			return "", a.fail(ErrInvalid, op, "give the name of a key pair of that region, or the public key itself",
				"there is no key pair %q in %s, and it is no public key", clip(name, 60), region)
		case !found:
			return name, a.importKey(ctx, region, name, key)
		case isText && !sameKey(pair, key):
			return "", a.fail(ErrConflict, op, "rename or remove that key pair", "there is a key pair %q with another key in %s", name, region)
		}
		return name, nil
	})
}

func (a *AWS) findKey(ctx context.Context, op, region, name string) (types.KeyPairInfo, bool, error) {
	out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, &ec2.DescribeKeyPairsInput{
		Filters: []types.Filter{awsFilter("key-name", name)}, IncludePublicKey: aws.Bool(true),
	}, (*ec2.Client).DescribeKeyPairs)
	if err != nil || len(out.KeyPairs) == 0 {
		return types.KeyPairInfo{}, false, err
	}
	return out.KeyPairs[0], true, nil
}

// sameKey compares the key itself. EC2 does not know it of every pair.
func sameKey(pair types.KeyPairInfo, key publicKey) bool {
	fields := strings.Fields(aws.ToString(pair.PublicKey))
	return len(fields) < 2 || fields[0]+" "+fields[1] == key.text
}

func (a *AWS) importKey(ctx context.Context, region, name string, key publicKey) error {
	// A name that is taken now is the same key, by somebody who was faster, or
	// by us and the answer was lost: the name has its fingerprint.
	_, err := awsCall(ctx, a, awsReq{op: "import the SSH key", region: region, harmless: true, kind: awsWrites}, &ec2.ImportKeyPairInput{
		KeyName: aws.String(name), PublicKeyMaterial: []byte(key.text),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeKeyPair, Tags: awsTags(a.labels.shared(roleLogin), "")}},
	}, (*ec2.Client).ImportKeyPair)
	if hasCode(err, "InvalidKeyPair.Duplicate") {
		return nil
	}
	return err
}
