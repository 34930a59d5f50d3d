package provision

import (
	"context"
	"net/url"
)

// Console.

// ConsoleOutput returns what the server wrote to its first serial port since
// its start, the last megabyte of it: GET .../serialPort. It is empty while a
// server has said nothing yet.
func (g *GCP) ConsoleOutput(ctx context.Context, id string) (string, error) {
	const op = "read console"
	zone, name, err := g.parseID(op, "server", id)
	if err != nil {
		return "", err
	}
	var out gcpSerialPort
	err = g.get(ctx, op, g.zonal(zone, "instances/"+name+"/serialPort"), url.Values{"port": {"1"}}, &out)
	if hasCode(err, "resourceNotReady") { // it has not started yet
		return "", nil
	}
	return out.Contents, err
}
