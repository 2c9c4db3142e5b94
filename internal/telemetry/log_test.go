package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// canary has no shape that a pattern could know.
const canary = "S3KRIT"

type task struct {
	ID     string
	Prompt string
	inner  map[string]string
}

type valuer struct{ v any }

func (v valuer) LogValue() slog.Value { return slog.AnyValue(v.v) }

type speaking struct{ text string }

func (s *speaking) String() string { return s.text }

// Values that carry the canary, each in one kind that an attribute can have.
func carriers() map[string]slog.Value {
	whole := task{"op", canary, map[string]string{"a": canary}}
	link, _ := url.Parse("https://u:" + canary + "@h.example/" + canary + "?q=" + canary)
	request, _ := http.NewRequest("GET", link.String(), strings.NewReader(canary))
	request.Header.Set("Authorization", "Bearer "+canary)
	var none *speaking
	return map[string]slog.Value{
		"string":           slog.StringValue("Bearer " + canary),
		"formatted struct": slog.StringValue(fmt.Sprintf("%+v", whole)),
		"error":            slog.AnyValue(errors.New("get https://h.example/" + canary)),
		"wrapped error":    slog.AnyValue(fmt.Errorf("op: %w", &url.Error{Op: "Get", URL: link.String(), Err: errors.New("token=" + canary)})),
		"bytes":            slog.AnyValue([]byte(canary)),
		"raw JSON":         slog.AnyValue(json.RawMessage(`"` + canary + `"`)),
		"buffer":           slog.AnyValue(bytes.NewBufferString(canary)),
		"group":            slog.GroupValue(slog.String("token", canary), slog.Group("deeper", "prompt", canary, "u", link.String())),
		"valuer":           slog.AnyValue(valuer{"whsec_" + canary}),
		"valuer of struct": slog.AnyValue(valuer{whole}),
		"valuer of valuer": slog.AnyValue(valuer{valuer{errors.New("pawl_sk_" + canary)}}),
		"stringer":         slog.AnyValue(&speaking{"v1," + canary}),
		"nil stringer":     slog.AnyValue(none),
		"struct":           slog.AnyValue(whole),
		"pointer":          slog.AnyValue(&whole),
		"map":              slog.AnyValue(map[string]any{"a": canary}),
		"slice":            slog.AnyValue([]any{canary, whole}),
		"strings":          slog.AnyValue([]string{"sha256=" + canary}),
		"header":           slog.AnyValue(request.Header),
		"request":          slog.AnyValue(request),
		"url":              slog.AnyValue(link),
		"function":         slog.AnyValue(func() string { return canary }),
	}
}

func TestLogHoldsNoCanary(t *testing.T) {
	var out bytes.Buffer
	text := slog.New(telemetry.NewHandler(slog.NewTextHandler(&out, nil)))
	for name, v := range carriers() {
		for _, log := range []*slog.Logger{telemetry.NewLogger(&out, slog.LevelDebug), text} {
			out.Reset()
			a := slog.Attr{Key: "value", Value: v}
			log.Info("m", a)
			log.With(a).Info("m")
			log.WithGroup("g").With(a).Info("m", a)
			log.Info("m", slog.Group("g", a))
			if strings.Contains(out.String(), canary) {
				t.Errorf("%s:\n%s", name, out.String())
			}
			if n := strings.Count(out.String(), "\n"); n != 4 {
				t.Errorf("%s: %d lines for 4 entries", name, n)
			}
		}
	}
}

func TestDeniedNames(t *testing.T) {
	deny := []string{"authorization", "Authorization", "secret", "webhook_secret", "key", "api_key", "apiKey", "X-Api-Key", "apikey", "idempotency_key", "token", "accessToken", "access_tokens", "signature", "X-Webhook-Signature", "password", "cookie", "Set-Cookie", "prompt", "input", "result", "results", "body", "request.body", "query", "url_query"}
	allow := []string{"key_id", "operation", "task_id", "body_bytes", "result_count", "state", "route", "url", "took", "keyboard", "secretary"}
	log := func(key string) string {
		var out bytes.Buffer
		l := telemetry.NewLogger(&out, slog.LevelInfo)
		l.Info("m", key, canary)
		l.With(key, canary).Info("m")
		l.WithGroup(key).Info("m", "a", canary)
		l.WithGroup(key).WithGroup("b").With("a", canary).Info("m")
		l.Info("m", slog.Group(key, "a", canary))
		return out.String()
	}
	for _, key := range deny {
		if text := log(key); strings.Contains(text, canary) || strings.Count(text, "[redacted]") != 5 {
			t.Errorf("%s is shown:\n%s", key, text)
		}
	}
	for _, key := range allow {
		if text := log(key); strings.Count(text, canary) != 5 {
			t.Errorf("%s is not shown:\n%s", key, text)
		}
	}
}

func TestLogKeepsWhatIsSafe(t *testing.T) {
	var out bytes.Buffer
	telemetry.NewLogger(&out, slog.LevelInfo).Info("done https://h.example/x",
		"state", pawl.Running, "n", 7, "took", time.Second, "ok", true, "err", errors.New("op: timeout"), "none", nil, "f", 1.5, "status", uint8(3))
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"msg": "done https://h.example/…", "state": "running", "n": 7.0, "took": 1e9, "ok": true, "err": "op: timeout", "none": nil, "f": 1.5, "status": 3.0}
	for key, v := range want {
		if got[key] != v {
			t.Errorf("%s: got %v, want %v", key, got[key], v)
		}
	}
}

func TestLogCannotBeForged(t *testing.T) {
	var out bytes.Buffer
	forged := "x\r\n{\"level\":\"ERROR\",\"msg\":\"forged\"}\u2028\x1b[2J"
	telemetry.NewLogger(&out, slog.LevelInfo).Info(forged, "owner", forged, forged, 1)
	if strings.Count(out.String(), "\n") != 1 || strings.ContainsAny(out.String(), "\r\x1b\u2028") {
		t.Errorf("%q", out.String())
	}
}

func TestLevelCanChange(t *testing.T) {
	var out bytes.Buffer
	var level slog.LevelVar
	log := telemetry.NewLogger(&out, &level)
	log.Debug("quiet")
	level.Set(slog.LevelDebug)
	log.Debug("loud")
	if got := out.String(); strings.Contains(got, "quiet") || !strings.Contains(got, "loud") {
		t.Error(got)
	}
}

// The standard library's own rules for handlers hold.
func TestHandlerRules(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return telemetry.NewHandler(slog.NewJSONHandler(&out, nil))
	}, func(t *testing.T) map[string]any {
		var m map[string]any
		if err := json.Unmarshal(out.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		return m
	})
}
