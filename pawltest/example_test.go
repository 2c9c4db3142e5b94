package pawltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/pawltest"
)

// makeVideo is a program under test: it has a video made and gives its address.
func makeVideo(ctx context.Context, c *client.Client, prompt string) (string, error) {
	op, err := c.Run(ctx, client.Submission{Upstream: "test", Model: "kling-2", Input: map[string]string{"prompt": prompt}})
	if err != nil {
		return "", err
	}
	if op.State != pawl.Succeeded {
		return "", errors.New("no video: " + op.Error.Error())
	}
	var video struct{ URL string }
	err = json.Unmarshal(op.Result, &video)
	return video.URL, err
}

// The test of a program that uses Pawl: a Pawl of its own, an upstream that does
// what the test says, nothing else to install or to start.
func TestMakeVideo(t *testing.T) {
	p := pawltest.New(t, pawltest.Options{})

	p.Upstream.Script(pawltest.Script{Result: map[string]string{"url": "video-1"}, Tell: pawltest.TellTwice})
	if url, err := makeVideo(t.Context(), p.Client, "a red kite"); err != nil || url != "video-1" {
		t.Errorf("%q, %v", url, err)
	}

	p.Upstream.Script(pawltest.Script{End: pawl.Failed, Code: "content_rejected", Message: "no kites"})
	if _, err := makeVideo(t.Context(), p.Client, "a red kite"); err == nil || err.Error() != "no video: content_rejected: no kites" {
		t.Errorf("%v", err)
	}
}
