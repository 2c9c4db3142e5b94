package cli

import (
	"net/http"
	"time"
)

// workCmd are the commands of an own worker.
type workCmd struct {
	Lease     workLeaseCmd     `cmd:"" help:"Lease the oldest operations that wait for a worker, with their inputs."`
	Heartbeat workHeartbeatCmd `cmd:"" help:"Say that the work goes on, and hear whether it shall stop."`
	Progress  workProgressCmd  `cmd:"" help:"Show how far the work has come."`
	Complete  workCompleteCmd  `cmd:"" help:"Say that the work is done."`
	Fail      workFailCmd      `cmd:"" help:"Say that the work has failed."`
}

const workPath = "/v1/work/"

// leaseArg names a lease.
type leaseArg struct {
	Lease string `arg:"" help:"The lease, lease_…."`
}

func (a leaseArg) path(word string) string { return workPath + id(a.Lease) + "/" + word }

type workLeaseCmd struct {
	Capability []string      `sep:"," help:"A model that this worker can do, as MODEL or UPSTREAM/MODEL; repeated for several. All if it is left out." placeholder:"MODEL"`
	Wait       time.Duration `default:"0s" help:"How long to wait for work where there is none, at most 60s."`
	Max        int           `default:"1" help:"How many operations to lease at most."`
	Tenant     string        `help:"Of this tenant (keys with scope admin get every tenant's)." placeholder:"NAME"`
}

// Help teaches by example.
func (workLeaseCmd) Help() string {
	return "Where there is nothing to do, nothing is printed; with --json it is null. The exit status is 0 either way.\n\n" +
		examples(`pawl work lease --capability upper --wait 30s --json`, `pawl work lease --capability studio/kling-2 --max 4`)
}

func (c *workLeaseCmd) Run(s *session) error {
	if c.Wait < 0 {
		return usage("--wait must not be negative")
	}
	client, err := s.connect()
	if err != nil {
		return err
	}
	client.http.Timeout += c.Wait
	text, err := encode(struct {
		Capabilities []string `json:"capabilities,omitempty"`
		Wait         int      `json:"wait,omitempty"`
		Max          int      `json:"max,omitempty"`
	}{c.Capability, int(c.Wait / time.Second), c.Max})
	if err != nil {
		return err
	}
	path := workPath + "lease"
	if c.Tenant != "" {
		path += "?tenant=" + queryEscape(c.Tenant)
	}
	a, err := client.call(s.ctx, http.MethodPost, path, nil, text)
	switch {
	case err != nil:
		return err
	case a.status == http.StatusNoContent && s.flags.JSON:
		return s.printJSON([]byte("null"))
	case a.status == http.StatusNoContent:
		s.say("nothing to do")
		return nil
	}
	return s.answer(a)
}

type workHeartbeatCmd struct{ leaseArg }

func (c *workHeartbeatCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path("heartbeat"), struct{}{})
}
