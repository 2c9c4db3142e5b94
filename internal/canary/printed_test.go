package canary_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
	"github.com/pawlhq/pawl/webhook"
)

// Values that hold secrets print without them, whatever verb is used, alone and
// inside of others; what cannot know better is not logged but by its type.
func TestPrinted(t *testing.T) {
	w := newWatch(t)
	cfg, err := config.Parse("pawl.yaml", []byte(configuration("data", "http://127.0.0.1:1", "127.0.0.1:2")), noEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	set, err := upstream.Build(cfg)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := config.NewSecret(theConfigured)
	if err != nil {
		t.Fatal(err)
	}
	scheme, _ := webhook.Lookup("standard-webhooks")
	key, err := scheme.ParseKey(theEndpointSecret)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{
		cfg, &cfg, cfg.Upstreams, cfg.Upstreams["up"], set, set["up"], set["up"].Settings(), secret, &secret, []config.Secret{secret}, struct{ s config.Secret }{secret},
		key, &key, []webhook.Key{key}, map[string]webhook.Key{"a": key}, struct{ k webhook.Key }{key},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			w.look(printed, fmt.Sprintf(verb, v))
		}
		if text, err := json.Marshal(v); err == nil {
			w.look(printed, string(text))
		}
		w.log(v)
	}
	// Rows and commands hold secrets as they are: of them, the log shows no more
	// than the type.
	for _, v := range []any{
		ledger.APIKey{WebhookSecret: theEndpointSecret}, ledger.Endpoint{Secret: theEndpointSecret, URL: endpointAt("https://h.example", "ok")},
		ledger.Submit{Input: thePrompt, Metadata: theMetadata, Key: theKey}, &ledger.ReceiveEvent{Body: theForged},
		ledger.Outcome{Value: ledger.APIKey{WebhookSecret: theEndpointSecret}}, server.Options{AdminKey: theAdminKey},
		map[string]string{"a": thePrompt}, []byte(thePrompt), []any{thePrompt},
	} {
		w.log(v)
	}
	w.judge(nil)
}

// log logs a value alone, in a group and with the logger.
func (w *watch) log(v any) {
	out := new(buffer)
	log := telemetry.NewLogger(out, slog.LevelDebug)
	log.Debug("a value", "value", v, slog.Group("group", "value", v))
	log.With("value", v).WithGroup("g").Info("a value", "v", v)
	w.look(logs, out.String())
}

// The key that callback tokens are made from does not print: two of them look
// the same.
func TestCallbacksPrintNoKey(t *testing.T) {
	a, b := upstream.NewCallbacks("https://h.example", []byte(theConfigured)), upstream.NewCallbacks("https://h.example", []byte(theForged))
	for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%d"} {
		if one, other := fmt.Sprintf(verb, a), fmt.Sprintf(verb, b); one != other {
			t.Errorf("%s shows the key: %s", verb, one)
		}
	}
}
