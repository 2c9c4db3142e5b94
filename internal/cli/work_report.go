package cli

import (
	"encoding/json"
	"net/http"
)

type workProgressCmd struct {
	leaseArg
	Percent *float64 `help:"From 0 to 100." placeholder:"N"`
	Message string   `help:"A few words; they are shown as the operation's upstream_state." placeholder:"TEXT"`
}

// Help teaches by example.
func (workProgressCmd) Help() string {
	return examples(`pawl work progress lease_01…_1 --percent 40 --message "frame 17"`)
}

func (c *workProgressCmd) Run(s *session) error {
	if c.Percent == nil && c.Message == "" {
		return usage("give --percent, --message or both")
	}
	return s.send(http.MethodPost, c.path("progress"), struct {
		Percent *float64 `json:"percent,omitempty"`
		Message string   `json:"message,omitempty"`
	}{c.Percent, c.Message})
}

type workCompleteCmd struct {
	leaseArg
	Result   string `help:"A JSON value: itself, @FILE, or - for standard input." placeholder:"JSON"`
	Cost     string `help:"What it cost, such as 0.12:USD; its price if it is left out." placeholder:"AMOUNT:CUR"`
	Canceled bool   `help:"It was stopped, as a heartbeat had asked for."`
}

// Help teaches by example.
func (workCompleteCmd) Help() string {
	return examples(`pawl work complete lease_01…_1 --result '{"text":"HELLO"}'`, `pawl work complete lease_01…_1 --result @result.json --cost 0.12:USD`)
}

func (c *workCompleteCmd) Run(s *session) error {
	body := struct {
		Result   json.RawMessage `json:"result,omitempty"`
		Cost     *cost           `json:"cost,omitempty"`
		Canceled bool            `json:"canceled,omitempty"`
	}{Canceled: c.Canceled}
	var err error
	if c.Result != "" {
		if body.Result, err = s.value("--result", c.Result); err != nil {
			return err
		}
	}
	if c.Cost != "" {
		if body.Cost, err = parseCost("--cost", c.Cost); err != nil {
			return err
		}
	}
	return s.send(http.MethodPost, c.path("complete"), body)
}

type workFailCmd struct {
	leaseArg
	Code      string `arg:"" enum:"invalid_request,unsupported_combination,content_rejected,rate_limited,upstream_unavailable,generation_failed,timeout,invalid_asset,upstream_failed" help:"Why: ${enum}."`
	Message   string `help:"For people; it is shown with the operation." placeholder:"TEXT"`
	Retryable bool   `help:"Another worker may try."`
}

// Help teaches by example.
func (workFailCmd) Help() string {
	return examples(`pawl work fail lease_01…_1 content_rejected --message "the picture shows a face"`, `pawl work fail lease_01…_1 generation_failed --retryable`)
}

func (c *workFailCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path("fail"), struct {
		Code      string `json:"code"`
		Message   string `json:"message,omitempty"`
		Retryable bool   `json:"retryable,omitempty"`
	}{c.Code, c.Message, c.Retryable})
}
