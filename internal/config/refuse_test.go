package config_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
)

// refusals name, for each text, the line and key of the problem and a part of
// the remedy.
var refusals = []struct {
	name, text string
	line       int
	key        string
	remedy     string
}{
	{"unknown key", "listen: :80\nlisten_adress: x\n", 2, "listen_adress", "the keys here are listen, admin_listen"},
	{"unknown nested key", "upstreams:\n  s:\n    preset: p\n    read:\n      fist: 2s\n", 5, "upstreams.s.read.fist", "the keys here are first, factor, max, rate"},
	{"unknown key of strange shape", "\"a b\": 1\n", 1, "(key)", "the keys here are"},
	{"duplicate key", "drain: 1s\ndata: x\ndrain: 2s\n", 3, "drain", "first on line 1; keep one"},
	{"duplicate in flow", "upstreams: {s: {preset: p, owner: a, owner: b}}", 1, "upstreams.s.owner", "keep one"},
	{"duplicate name, quoted", "tenants:\n  a: {}\n  \"a\": {}\n", 3, "tenants.a", "keep one"},
	{"unset variable", "data: x\npublic_url: https://${NOT_SET}\n", 2, "public_url", "NOT_SET is not set; set it before the start"},
	{"bad reference", "data: ${A B}\n", 1, "data", "write ${NAME}, ${file:PATH}"},
	{"open reference", "data: ${A\n", 1, "data", "write ${NAME}, ${file:PATH}"},
	{"reference to no file", "data: ${file:}\n", 1, "data", "write ${file:PATH}"},
	{"unreadable file", "data: ${file:absent/secret}\n", 1, "data", `"absent/secret" cannot be read (no such file or directory); check`},
	{"binary variable", "data: ${BINARY}\n", 1, "data", "not UTF-8 text; check the variable"},
	{"syntax", "listen: \"x\ndata: y\n", 1, "", "check quotes"},
	{"unquoted reference in flow", "sources:\n  s: {scheme: x, secrets: [${STRIPE_SECRET}]}\n", 2, "", "inside { } and [ ] also \"${NAME}\""},
	{"two documents", "data: x\n---\ndata: y\n", 3, "", "remove the line ---"},
	{"deep brackets", "data: x\negress: " + strings.Repeat("[", 300), 2, "", "close them"},
	{"too large", "#" + strings.Repeat("x", 256<<10), 0, "", "name the right one"},
	{"anchor", "data: &x y\n", 1, "data", "write the value out"},
	{"alias", "tenants:\n  a: &x {}\n  b: *x\n", 2, "tenants.a", "write the value out"},
	{"tag", "data: !!str y\n", 1, "data", "write the value out"},
	{"merge key", "tenants:\n  <<: {a: {}}\n", 2, "tenants", "anchors, aliases, tags and << are not supported"},
	{"null", "sources:\ndata: x\n", 1, "sources", "give one or remove the key"},
	{"scalar for a mapping", "upstreams: x\n", 1, "upstreams", "must be a mapping from names"},
	{"scalar for the file", "x\n", 1, "", "must be a mapping with the keys listen"},
	{"list for a mapping", "idempotency: [24h]\n", 1, "idempotency", "must be a mapping with the keys window"},
	{"scalar for a list", "egress: {allow: 10.0.0.0/8}\n", 1, "egress.allow", "write [a, b]"},
	{"mapping for a scalar", "data: {a: b}\n", 1, "data", "must be one value"},

	{"front of nothing", "data: x\nfronts: {media: {}}\n", 2, "fronts.media", "unknown key; the keys here are media-v2, body-timestamp"},
	{"front's model without upstream", front("media-v2: {models: {k: kling}}"), 2, "fronts.media-v2.models.k", "must be UPSTREAM/MODEL"},
	{"front's model without model", front("media-v2: {models: {k: s/}}"), 2, "fronts.media-v2.models.k", "must be UPSTREAM/MODEL"},
	{"front's model of no upstream", front("media-v2: {models: {k: t/m}}"), 2, "fronts.media-v2.models.k", "names an upstream that is not configured"},
	{"front's model that is not there", front("media-v2: {models: {k: s/n}}"), 2, "fronts.media-v2.models.k", "names a model that upstreams.s.models does not have"},
	{"front's model without a name", front(`media-v2: {models: {"": s/m}}`), 2, "fronts.media-v2.models.(key)", "the model's name is empty"},
	{"front of no upstream", front("body-timestamp: {upstream: t, model: m}"), 2, "fronts.body-timestamp.upstream", "names an upstream that is not configured"},
	{"front of no model", front("body-timestamp: {upstream: s, model: n}"), 2, "fronts.body-timestamp.model", "names a model that upstreams.s.models does not have"},
	{"front of a model alone", front("body-timestamp: {model: m}"), 2, "fronts.body-timestamp.model", "stands alone"},
	{"front of a strange tenant", front("body-timestamp: {tenant: A}"), 2, "fronts.body-timestamp.tenant", "the name may have"},
	{"front anonymous perhaps", front("body-timestamp: {anonymous: maybe}"), 2, "fronts.body-timestamp.anonymous", "must be true or false"},
	{"front anonymous for all", front("body-timestamp: {anonymous: true}\nlisten: 0.0.0.0:8080"), 2, "fronts.body-timestamp.anonymous", "only a loopback listener may"},
	{"front anonymous everywhere", front("body-timestamp: {anonymous: true}\nlisten: :8080"), 2, "fronts.body-timestamp.anonymous", "only a loopback listener may"},
	{"front anonymous in a network", front("body-timestamp: {anonymous: true}\nlisten: \"[fd00::1]:8080\""), 2, "fronts.body-timestamp.anonymous", "only a loopback listener may"},
	{"front anonymous by a name", front("body-timestamp: {anonymous: true}\nlisten: pawl.internal:8080"), 2, "fronts.body-timestamp.anonymous", "only a loopback listener may"},
	{"confirm by what", up("confirm: push"), 1, "upstreams.s.confirm", "must be poll"},
	{"trust in whom", up("trust: maybe"), 1, "upstreams.s.trust", "must be signed or hint"},
	{"no orphans", up("orphan_limit: 0"), 1, "upstreams.s.orphan_limit", "must be from 1 to 100000"},
	{"too many orphans", up("orphan_limit: 100001"), 1, "upstreams.s.orphan_limit", "must be from 1 to 100000"},
	{"negative rate of callbacks", up("callback_rate: -1"), 1, "upstreams.s.callback_rate", "must be from 0.001"},
	{"release of what", up("release: maybe"), 1, "upstreams.s.release", "must be hold"},
	{"store of another kind", "artifacts: {store: \"ftp://bucket\"}\n", 1, "artifacts.store", "must be a folder such as file:///"},
	{"store with credentials", "artifacts: {store: \"s3://key:secret@bucket\"}\n", 1, "artifacts.store", "a bucket such as s3://NAME"},
	{"store without a bucket", "artifacts: {store: \"azblob:///films\"}\n", 1, "artifacts.store", "a bucket such as s3://NAME"},
	{"store with a relative folder", "artifacts: {store: \"file://files\"}\n", 1, "artifacts.store", "must be a folder such as file:///"},
	{"files of no size", "artifacts: {max_size: 0B}\n", 1, "artifacts.max_size", "must be from 1B"},
	{"no fetches", "artifacts: {concurrency: 0}\n", 1, "artifacts.concurrency", "must be from 1 to 1000"},
	{"no fetches from a host", "artifacts: {per_host: 0}\n", 1, "artifacts.per_host", "must be from 1 to 1000"},
	{"links without life", "artifacts: {link_ttl: 0s}\n", 1, "artifacts.link_ttl", "must be longer than 0"},
	{"spending without an amount", up("spending: {per: day}"), 1, "upstreams.s.spending.amount", "must be more than 0"},
	{"spending as a number", up("spending: 5"), 1, "upstreams.s.spending", "must be a mapping with the keys amount, currency, per"},
	{"spending a week", up(`spending: {amount: "5", per: week}`), 1, "upstreams.s.spending.per", "must be day"},
	{"spending in a word", up(`spending: {amount: "5", currency: dollars}`), 1, "upstreams.s.spending.currency", "not a currency"},
	{"negative rate of creates", up("submit: {rate: -1}"), 1, "upstreams.s.submit.rate", "must be from 0.001"},
	{"release of a model", up("models: {m: {release: later}}"), 1, "upstreams.s.models.m.release", "must be hold"},
	{"size without a unit", "disk: {min_free: 1000000}\n", 1, "disk.min_free", "a whole number and a unit, such as 512MiB"},
	{"size in decimal", "disk: {min_free: 1.5GiB}\n", 1, "disk.min_free", "a whole number and a unit"},
	{"negative size", "disk: {min_free: -1GiB}\n", 1, "disk.min_free", "a whole number and a unit"},
	{"size beyond all disks", "disk: {min_free: 8589934592GiB}\n", 1, "disk.min_free", "a whole number and a unit"},
	{"PostgreSQL without secrets", "database: postgres://u:p@h/d\n", 0, "secrets", "required with PostgreSQL, so that all nodes seal with the same key; \"pawl key wrapping\" draws one"},
	{"another database", "database: mysql://h/d\n", 1, "database", "remove the key to use SQLite"},

	{"listen", "listen: localhost\n", 1, "listen", "write host:port"},
	{"port", "listen: localhost:99999\n", 1, "listen", "write host:port"},
	{"named port", "admin_listen: localhost:http\n", 1, "admin_listen", "write host:port"},
	{"same listeners", "listen: :80\nadmin_listen: :80\n", 2, "admin_listen", "give it another port"},
	{"public_url without scheme", "public_url: pawl.example.com\n", 1, "public_url", "write one such as https://"},
	{"public_url of another scheme", "public_url: ftp://pawl.example.com\n", 1, "public_url", "write one such as https://"},
	{"public_url with password", "public_url: https://a:b@h\n", 1, "public_url", "remove it"},
	{"public_url with query", "public_url: https://h?a=b\n", 1, "public_url", "remove everything from ?"},
	{"empty data", "data: ''\n", 1, "data", "name the folder"},
	{"not a prefix", "egress:\n  allow:\n    - 10.0.0.0/8\n    - intranet\n", 4, "egress.allow[1]", "write one such as 10.0.0.0/8"},
	{"an address", "egress: {allow: [127.0.0.1]}\n", 1, "egress.allow[0]", "write /32 after it"},
	{"host bits", "egress: {allow: [10.1.2.3/8]}\n", 1, "egress.allow[0]", "write 10.0.0.0/8"},
	{"mapped prefix", "egress: {allow: [\"::ffff:10.0.0.0/104\"]}\n", 1, "egress.allow[0]", "write it as IPv4"},
	{"duration without unit", "drain: 10\n", 1, "drain", "write a number and a unit, such as 300ms, 1.5s or 2h"},
	{"duration of zero", "drain: 0s\n", 1, "drain", "must be longer than 0"},
	{"negative duration", "idempotency: {window: -1h}\n", 1, "idempotency.window", "must be longer than 0"},
	{"endless duration", "drain: 9000h\n", 1, "drain", "at most 366 days"},

	{"upstream name", "upstreams: {Studio: {preset: p}}\n", 1, "upstreams.Studio", "rename it"},
	{"upstream name too long", "upstreams: {" + strings.Repeat("a", 64) + ": {preset: p}}\n", 1, "upstreams.(key)", "rename it"},
	{"source name", "sources: {-a: {scheme: stripe}}\n", 1, "sources.-a", "rename it"},
	{"tenant name", "tenants: {a.b: {}}\n", 1, "tenants.a.b", "rename it"},
	{"preset and description", up("description: x"), 1, "upstreams.s.description", "keep one of the two"},
	{"description that cannot be read", "upstreams:\n  s: {description: \"${file:nope.yaml}\"}\n", 2, "upstreams.s.description", "cannot be read"},
	{"description without text", "upstreams:\n  s: {description: \"\"}\n", 2, "upstreams.s.description", "is empty"},
	{"no preset", "upstreams:\n  s: {owner: me}\n", 2, "upstreams.s.preset", "such as media-v2"},
	{"base_url", up("base_url: /api"), 1, "upstreams.s.base_url", "write one such as https://"},
	{"deadline", up("deadline: forever"), 1, "upstreams.s.deadline", "write a number and a unit"},
	{"price too fine", up("models: {m: {price: \"0.0000000001\"}}"), 1, "upstreams.s.models.m.price", "at most nine places"},
	{"price in words", up("models: {m: {price: cheap}}"), 1, "upstreams.s.models.m.price", "in quotes, such as \"0.15\""},
	{"price with exponent", up("models: {m: {price: 1e-3}}"), 1, "upstreams.s.models.m.price", "write a plain decimal"},
	{"price in hexadecimal", up("models: {m: {price: 0x10}}"), 1, "upstreams.s.models.m.price", "write a plain decimal"},
	{"price with underscores", up("models: {m: {price: 1_000}}"), 1, "upstreams.s.models.m.price", "write a plain decimal"},
	{"negative price", up("models: {m: {price: -1}}"), 1, "upstreams.s.models.m.price", "write 0 or more"},
	{"empty model", up("models: {\"\": {}}"), 1, "upstreams.s.models.(key)", "write the provider's name"},
	{"factor", up("read: {factor: 0.5}"), 1, "upstreams.s.read.factor", "must be from 1 to 10"},
	{"factor not a number", up("read: {factor: .nan}"), 1, "upstreams.s.read.factor", "write one such as 1.5"},
	{"factor NaN", up("read: {factor: NaN}"), 1, "upstreams.s.read.factor", "must be from 1 to 10"},
	{"rate", up("read: {rate: 0}"), 1, "upstreams.s.read.rate", "must be from 0.001"},
	{"max before first", up("read: {first: 20s}"), 1, "upstreams.s.read.max", "at least as long"},
	{"currency", up("currency: usd"), 1, "upstreams.s.currency", "three upper-case letters"},
	{"concurrency of zero", up("concurrency: 0"), 1, "upstreams.s.concurrency", "must be from 1"},
	{"concurrency in words", up("concurrency: many"), 1, "upstreams.s.concurrency", "write digits"},
	{"owner", up("owner: \"a\\nb\""), 1, "upstreams.s.owner", "remove control characters"},
	{"tenants", up("tenants: [A]"), 1, "upstreams.s.tenants[0]", "rename it"},
	{"late_success", up("late_success: maybe"), 1, "upstreams.s.late_success", "must be review or accept"},
	{"idempotent true", up("idempotent: true"), 1, "upstreams.s.idempotent", "write {header: NAME, window: DURATION}, or false"},
	{"idempotent without window", up("idempotent: {header: A}"), 1, "upstreams.s.idempotent.window", "must be longer than 0"},
	{"idempotent header", up("idempotent: {header: A_B, window: 1h}"), 1, "upstreams.s.idempotent.header", "letters, digits and hyphens"},
	{"orphans", up("orphans: keep"), 1, "upstreams.s.orphans", "must be park or reject"},
	{"grace", up("grace: 0s"), 1, "upstreams.s.grace", "must be longer than 0"},
	{"key of two lines", up("key: \"a\\nb\""), 1, "upstreams.s.key", "write it on one line"},

	{"no scheme", "sources: {s: {tenant: a}}\n", 1, "sources.s.scheme", "such as stripe"},
	{"name of an upstream", "upstreams: {s: {preset: p}}\nsources: {s: {scheme: stripe}}\n", 2, "sources.s", "rename it"},
	{"tenant of a source", "sources: {s: {scheme: stripe, tenant: A}}\n", 1, "sources.s.tenant", "rename it"},
	{"orphans of a source", "sources: {s: {scheme: stripe, orphans: park}}\n", 1, "sources.s.orphans", "unknown key"},
	{"type with a comma", "sources: {s: {scheme: stripe, types: [\"a,b\"]}}\n", 1, "sources.s.types[0]", "without a comma"},
	{"type twice", "sources: {s: {scheme: stripe, types: [a, b, a]}}\n", 1, "sources.s.types[2]", "once"},
	{"header of a credential", "sources: {s: {scheme: stripe, headers: [X-Ok, X-Api-Key]}}\n", 1, "sources.s.headers[1]", "no credential or signature"},
	{"header of ours", "sources: {s: {scheme: stripe, headers: [Pawl-Attempt]}}\n", 1, "sources.s.headers[0]", "of the sender's own"},
	{"header of the connection", "sources: {s: {scheme: stripe, headers: [Content-Length]}}\n", 1, "sources.s.headers[0]", "of the sender's own"},
	{"content type with parameters", "sources: {s: {scheme: stripe, content_types: [\"text/xml; charset=utf-8\"]}}\n", 1, "sources.s.content_types[0]", "without parameters"},
	{"rate of a source", "sources: {s: {scheme: stripe, callback_rate: -1}}\n", 1, "sources.s.callback_rate", "must be from"},
	{"kind of handshake", "sources: {s: {scheme: slack, handshake: {kind: any}}}\n", 1, "sources.s.handshake.kind", "must be slack or zoom or hub or cloudevents"},
	{"hub for anybody", "sources: {s: {scheme: github, handshake: {kind: hub}}}\n", 1, "sources.s.handshake", "answers anybody"},
	{"token of no hub", "sources: {s: {scheme: slack, handshake: {kind: slack, verify_token: t0ken}}}\n", 1, "sources.s.handshake", "for kind hub"},
	{"cloudevents from anywhere", "sources: {s: {scheme: github, handshake: {kind: cloudevents}}}\n", 1, "sources.s.handshake.origins", "name the origins"},
	{"origin of no cloudevents", "sources: {s: {scheme: slack, handshake: {kind: slack, origins: [a.example.com]}}}\n", 1, "sources.s.handshake", "for kind cloudevents"},
	{"origin with a scheme", "sources: {s: {scheme: github, handshake: {kind: cloudevents, origins: [\"https://a.example.com\"]}}}\n", 1, "sources.s.handshake.origins[0]", "must be a DNS name"},
	{"list of nothing", "sources: {s: {scheme: stripe, list: {key: k}}}\n", 1, "sources.s.list.url", "write the list's address"},
	{"list too slow", "sources: {s: {scheme: stripe, list: {url: u, timeout: 16s}}}\n", 1, "sources.s.list.timeout", "at most 15s"},
	{"list too often", "sources: {s: {scheme: stripe, list: {url: u, rate: 101}}}\n", 1, "sources.s.list.rate", ""},
	{"read of nothing", "sources: {s: {scheme: stripe, read: {key: k}}}\n", 1, "sources.s.read.url", "write the record's address"},
	{"format without key", "sources: {s: {scheme: stripe, read: {url: \"https://a.example.com/x\", format: Bearer}}}\n", 1, "sources.s.read.format", "must contain {key}"},
	{"slow read", "sources: {s: {scheme: stripe, read: {url: \"https://a.example.com/x\", timeout: 11s}}}\n", 1, "sources.s.read.timeout", "at most 10s"},
	{"empty secret", "sources: {s: {scheme: stripe, secrets: [\"${EMPTY}\"]}}\n", 1, "sources.s.secrets[0]", "give it a value"},
	{"secret with a space before", "sources: {s: {scheme: stripe, secrets: [\"${SPACED}\"]}}\n", 1, "sources.s.secrets[0]", "remove the spaces or line breaks"},
	{"secret with a line break after", "sources: {s: {scheme: stripe, secrets: [\"${BROKEN}\"]}}\n", 1, "sources.s.secrets[0]", "remove the spaces or line breaks"},
	{"secret written with a line break", "sources:\n  s:\n    scheme: stripe\n    secrets:\n      - |\n        s3cret\n", 5, "sources.s.secrets[0]", "remove the spaces or line breaks"},
	{"secret with a control character", "sources: {s: {scheme: stripe, secrets: [\"a\\eb\"]}}\n", 1, "sources.s.secrets[0]", "check how it was copied"},
	{"empty wrapping key", "secrets: \"${EMPTY}\"\n", 1, "secrets", "give it a value"},
	{"wrapping key with a line break", "secrets: \"base64key://${BROKEN}\"\n", 1, "secrets", "remove the spaces or line breaks"},
	{"one former wrapping key without a list", "former_secrets: base64key://x\n", 1, "former_secrets", "write [a, b], also for one entry"},
	{"empty former wrapping key", "former_secrets: [\"${EMPTY}\"]\n", 1, "former_secrets[0]", "give it a value"},
	{"too many secrets", "sources: {s: {scheme: stripe, secrets: [" + strings.Repeat("a, ", 16) + "a]}}\n", 1, "sources.s.secrets", "remove those no longer in use"},
	{"third secret", "sources:\n  s:\n    scheme: stripe\n    secrets:\n      - a\n      - b\n      - c\n", 7, "sources.s.secrets[2]", "remove the oldest one or give it an until"},
	{"third secret for a moment", up("webhook_keys: [a, {key: b, until: 2026-01-31T12:00:00.000001Z}, {key: c, from: 2026-01-31T12:00:00Z}]"), 1, "upstreams.s.webhook_keys[2]", "remove the oldest one"},
	{"third secret long ago", up("webhook_keys: [{key: a, until: 2001-01-01T00:00:00Z}, {key: b, until: 2001-01-01T00:00:00Z}, {key: c, until: 2001-01-01T00:00:00Z}]"), 1, "upstreams.s.webhook_keys[2]", "remove the oldest one"},
	{"until before from", "sources:\n  s:\n    scheme: stripe\n    secrets:\n      - key: a\n        from: 2026-02-01T00:00:00Z\n        until: 2026-01-01T00:00:00Z\n", 7, "sources.s.secrets[0].until", "correct one of the two"},
	{"until at from", up("webhook_keys: [{key: a, from: 2026-02-01T00:00:00Z, until: 2026-02-01T01:00:00+01:00}]"), 1, "upstreams.s.webhook_keys[0].until", "never active"},
	{"not a moment", up("webhook_keys: [{key: a, until: tomorrow}]"), 1, "upstreams.s.webhook_keys[0].until", "write it in RFC 3339"},
	{"a day", up("webhook_keys: [{key: a, until: 2026-02-01}]"), 1, "upstreams.s.webhook_keys[0].until", "write it in RFC 3339"},
	{"no offset", up("webhook_keys: [{key: a, from: \"2026-02-01T00:00:00\"}]"), 1, "upstreams.s.webhook_keys[0].from", "write it in RFC 3339"},
	{"dates without key", up("webhook_keys: [{until: 2026-02-01T00:00:00Z}]"), 1, "upstreams.s.webhook_keys[0]", "write the secret, or {key"},
	{"dates with empty key", up("webhook_keys: [{key: \"\", until: 2026-02-01T00:00:00Z}]"), 1, "upstreams.s.webhook_keys[0].key", "give it a value"},
	{"unknown date", up("webhook_keys: [{key: a, to: 2026-02-01T00:00:00Z}]"), 1, "upstreams.s.webhook_keys[0].to", "the keys here are key, from, until"},
	{"dated secret with a space before", up("webhook_keys: [{key: \"${SPACED}\"}]"), 1, "upstreams.s.webhook_keys[0].key", "remove the spaces or line breaks"},
	{"list for a secret", up("webhook_keys: [[a]]"), 1, "upstreams.s.webhook_keys[0]", "must be one value"},
	{"account without currency", "tenants: {t: {account: {credit: \"1\"}}}\n", 1, "tenants.t.account.currency", "three upper-case letters"},
	{"negative credit", "tenants: {t: {account: {currency: USD, credit: \"-1\"}}}\n", 1, "tenants.t.account.credit", "write 0 or more"},
	{"credit out of range", "tenants: {t: {account: {currency: USD, credit: \"99999999999\"}}}\n", 1, "tenants.t.account.credit", "amount is outside"},
}

// front is a configuration with an upstream s, whose one model is m, and these
// fronts.
func front(fronts string) string {
	text, rest, _ := strings.Cut(fronts, "\n")
	return "upstreams: {s: {preset: media-v2, models: {m: {}}}}\nfronts: {" + text + "}\n" + rest + "\n"
}

func up(settings string) string { return "upstreams: {s: {preset: p, " + settings + "}}\n" }

func TestRefusals(t *testing.T) {
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Parse("etc/pawl.yaml", []byte(tt.text), environment)
			var problems config.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("got %v, want Problems", err)
			}
			for _, p := range problems {
				if p.File == "etc/pawl.yaml" && p.Line == tt.line && p.Key == tt.key && strings.Contains(p.What, tt.remedy) {
					return
				}
			}
			t.Errorf("want line %d, key %q, %q in\n%v", tt.line, tt.key, tt.remedy, err)
		})
	}
}

// Each text has one thing wrong, so one problem is to be reported for it.
func TestOneProblemForOneMistake(t *testing.T) {
	for _, tt := range refusals {
		_, err := config.Parse("pawl.yaml", []byte(tt.text), environment)
		var problems config.Problems
		if !errors.As(err, &problems) || tt.name == "alias" {
			continue // Its anchor is a second one.
		}
		if len(problems) != 1 {
			t.Errorf("%s: %d problems\n%v", tt.name, len(problems), err)
		}
	}
}

func TestSecretsFromFilesAreRefusedLikeAllOthers(t *testing.T) {
	dir := t.TempDir()
	text := "sources:\n  s: {scheme: stripe, secrets: [\"${file:secret}\"]}\n"
	write(t, dir, "pawl.yaml", text)
	for _, content := range []string{" s3cret\n", "s3cret \n", "s3cret\n\n", "\ts3cret", "\n", ""} {
		write(t, dir, "secret", content)
		_, err := config.Load(filepath.Join(dir, "pawl.yaml"), environment)
		if err == nil || !strings.Contains(err.Error(), "pawl.yaml:2: sources.s.secrets[0]: the secret ") {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// Values never come back in messages: any of them may be a secret.
func TestValuesAreNotRepeated(t *testing.T) {
	const canary = "SEKRIT1"
	values := []string{canary, "x " + canary, "postgres://u:" + canary + "@h/d", "https://u:" + canary + "@h/?" + canary, "\"" + canary, "${" + canary + " x}", "{a: " + canary + "}", "[" + canary + "]", "- " + canary, "a: b: " + canary, "|\n " + canary + "\n", "@" + canary}
	for _, key := range []string{"listen", "public_url", "database", "egress", "drain", "upstreams", "sources", "tenants"} {
		for _, value := range values {
			_, err := config.Parse("pawl.yaml", []byte(key+": "+value+"\n"), environment)
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("%s: %s: %v", key, value, err)
			}
		}
	}
}
