package webhook

import "time"

// window is 300 s for all: the reference libraries of Standard Webhooks use it
// (SW-13), and 2-contracts §2 and §3 ask for it.
const window = 300 * time.Second

var dot = part{literal: "."}

// schemes is the whole difference between providers.
var schemes = []Scheme{
	standardWebhooks("standard-webhooks",
		tokenRule{prefix: "v1,", encoding: base64Strict, algorithm: hmacSHA256},
		keyRule{prefix: "whsec_", base64: true, min: 24, max: 64}),
	standardWebhooks("standard-webhooks-v1a",
		tokenRule{prefix: "v1a,", encoding: base64Strict, algorithm: pureEd25519},
		keyRule{ed25519: true}),
	{
		name:      "media-v2",
		timestamp: timestampRule{header: "X-Webhook-Timestamp", window: window},
		signature: signatureRule{header: "X-Webhook-Signature"},
		token:     tokenRule{encoding: base64Strict, algorithm: hmacSHA256},
		text:      []part{{kind: partTaskID}, dot, {kind: partTimestamp}, dot, {kind: partBodySHA256Hex}},
		taskPath:  []string{"data", "taskId"},
		fixed:     []fixedHeader{{name: "X-Webhook-Payload-Version", value: "2", reason: ReasonPayloadVersion}},
	},
	{
		name:      "body-timestamp",
		id:        "X-Webhook-Id",
		timestamp: timestampRule{header: "X-Webhook-Timestamp", window: window},
		signature: signatureRule{header: "X-Webhook-Signature"},
		token:     tokenRule{prefix: "sha256=", encoding: hexLower, algorithm: hmacSHA256},
		text:      []part{{kind: partTimestamp}, dot, {kind: partBody}},
	},
	{
		// As in Stripe's own libraries only the age is judged, and the whole
		// secret with its "whsec_" is the key.
		name:      "stripe",
		timestamp: timestampRule{header: "Stripe-Signature", element: "t=", window: window, past: true},
		signature: signatureRule{header: "Stripe-Signature", separator: ","},
		token:     tokenRule{prefix: "v1=", encoding: hexLower, algorithm: hmacSHA256},
		text:      []part{{kind: partTimestamp}, dot, {kind: partBody}},
	},
	{
		// Neither an id nor a time is signed: whoever captured a request can send
		// it again at any time, under any id.
		name:      "github",
		id:        "X-Github-Delivery",
		signature: signatureRule{header: "X-Hub-Signature-256"},
		token:     tokenRule{prefix: "sha256=", encoding: hexLower, algorithm: hmacSHA256},
		text:      []part{{kind: partBody}},
	},
	{
		name:      "slack",
		timestamp: timestampRule{header: "X-Slack-Request-Timestamp", window: window},
		signature: signatureRule{header: "X-Slack-Signature"},
		token:     versionZero, text: versionZeroText,
	},
	{
		// Zoom's own code judges no age, and nothing says that a retry gets a new
		// timestamp.
		name:      "zoom",
		timestamp: timestampRule{header: "X-Zm-Request-Timestamp"},
		signature: signatureRule{header: "X-Zm-Signature"},
		token:     versionZero, text: versionZeroText,
	},
	{
		// The hub chooses the method, of which SHA-1 is refused (WebSub §7). As at
		// GitHub nothing but the body is signed.
		name:      "websub",
		signature: signatureRule{header: "X-Hub-Signature"},
		token: tokenRule{prefix: "sha256=", encoding: hexLower, algorithm: hmacSHA256, others: []tokenRule{
			{prefix: "sha384=", encoding: hexLower, algorithm: hmacSHA384},
			{prefix: "sha512=", encoding: hexLower, algorithm: hmacSHA512},
		}},
		text: []part{{kind: partBody}},
	},
	{
		name:      "rfc9421",
		message:   true,
		id:        "Webhook-Id",
		timestamp: timestampRule{window: window},
		signature: signatureRule{header: "Signature", separator: ","},
		token:     tokenRule{encoding: base64Strict, algorithm: hmacSHA256},
		text:      []part{{kind: partID}},
		key:       keyRule{both: true, prefix: "whsec_", base64: true, min: 24, max: 64},
	},
}

// versionZero is what the signatures of Slack and Zoom have in common.
var (
	versionZero     = tokenRule{prefix: "v0=", encoding: hexLower, algorithm: hmacSHA256}
	versionZeroText = []part{{literal: "v0:"}, {kind: partTimestamp}, {literal: ":"}, {kind: partBody}}
)

// standardWebhooks is what the two schemes of that specification have in common:
// all but the algorithm, and so a list may hold signatures of both (SW-10).
func standardWebhooks(name string, token tokenRule, key keyRule) Scheme {
	return Scheme{
		name: name, shares: "Standard Webhooks", token: token, key: key,
		id:        "Webhook-Id",
		timestamp: timestampRule{header: "Webhook-Timestamp", window: window},
		signature: signatureRule{header: "Webhook-Signature", separator: " "},
		text:      []part{{kind: partID}, dot, {kind: partTimestamp}, dot, {kind: partBody}},
	}
}
