// Signs one message with Node's own crypto, by the text of each scheme, and prints
// the headers. It shares no code with Pawl.
import { createHash, createHmac, createPrivateKey, sign } from "node:crypto";

const m = JSON.parse(process.argv[2]); // {scheme, secret, id, timestamp, body (base64)}
const body = Buffer.from(m.body, "base64");
const hmac = (key, ...parts) => {
  const h = createHmac("sha256", key);
  for (const part of parts) h.update(part);
  return h;
};
const privateKey = (text) => {
  const bytes = Buffer.from(text.replace(/^whsk_/, ""), "base64"); // the seed, then the public key
  const part = (from, to) => bytes.subarray(from, to).toString("base64url");
  return createPrivateKey({ format: "jwk", key: { kty: "OKP", crv: "Ed25519", d: part(0, 32), x: part(32, 64) } });
};
const schemes = {
  "standard-webhooks": () => ({
    "webhook-id": m.id,
    "webhook-timestamp": m.timestamp,
    "webhook-signature":
      "v1," + hmac(Buffer.from(m.secret.replace(/^whsec_/, ""), "base64"), `${m.id}.${m.timestamp}.`, body).digest("base64"),
  }),
  "standard-webhooks-v1a": () => ({
    "webhook-id": m.id,
    "webhook-timestamp": m.timestamp,
    "webhook-signature":
      "v1a," + sign(null, Buffer.concat([Buffer.from(`${m.id}.${m.timestamp}.`), body]), privateKey(m.secret)).toString("base64"),
  }),
  "media-v2": () => {
    const task = JSON.parse(body).data.taskId;
    const digest = createHash("sha256").update(body).digest("hex");
    return {
      "X-Webhook-Timestamp": m.timestamp,
      "X-Webhook-Signature": hmac(m.secret, `${task}.${m.timestamp}.${digest}`).digest("base64"),
      "X-Webhook-Payload-Version": "2",
    };
  },
  "body-timestamp": () => ({
    "X-Webhook-Id": m.id,
    "X-Webhook-Timestamp": m.timestamp,
    "X-Webhook-Signature": "sha256=" + hmac(m.secret, `${m.timestamp}.`, body).digest("hex"),
  }),
};
process.stdout.write(JSON.stringify(schemes[m.scheme]()));
