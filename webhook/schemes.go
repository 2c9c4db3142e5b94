package webhook

import "time"

// window is 300 s for all three: the reference libraries of Standard Webhooks use
// it (SW-13), and 2-contracts §2 and §3 ask for it.
const window = 300 * time.Second

var dot = part{literal: "."}

// schemes is the whole difference between providers.
var schemes = []Scheme{
	{
		name:      "standard-webhooks",
		id:        "Webhook-Id",
		timestamp: timestampRule{header: "Webhook-Timestamp", window: window},
		signature: signatureRule{header: "Webhook-Signature", separator: " ", prefix: "v1,", encoding: base64Strict},
		text:      []part{{kind: partID}, dot, {kind: partTimestamp}, dot, {kind: partBody}},
		algorithm: hmacSHA256,
		key:       keyRule{prefix: "whsec_", base64: true, min: 24, max: 64},
	},
	{
		name:      "media-v2",
		timestamp: timestampRule{header: "X-Webhook-Timestamp", window: window},
		signature: signatureRule{header: "X-Webhook-Signature", encoding: base64Strict},
		text:      []part{{kind: partTaskID}, dot, {kind: partTimestamp}, dot, {kind: partBodySHA256Hex}},
		algorithm: hmacSHA256,
		taskPath:  []string{"data", "taskId"},
		fixed:     []fixedHeader{{name: "X-Webhook-Payload-Version", value: "2", reason: ReasonPayloadVersion}},
	},
	{
		name:      "body-timestamp",
		id:        "X-Webhook-Id",
		timestamp: timestampRule{header: "X-Webhook-Timestamp", window: window},
		signature: signatureRule{header: "X-Webhook-Signature", prefix: "sha256=", encoding: hexLower},
		text:      []part{{kind: partTimestamp}, dot, {kind: partBody}},
		algorithm: hmacSHA256,
	},
}
