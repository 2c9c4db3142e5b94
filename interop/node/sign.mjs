// Signs one message with Node's own crypto, by the text of the three schemes,
// and prints the headers. It shares no code with Pawl.
import { createHash, createHmac } from "node:crypto";

const m = JSON.parse(process.argv[2]); // {scheme, secret, id, timestamp, body (base64)}
const body = Buffer.from(m.body, "base64");
const hmac = (key, ...parts) => {
  const h = createHmac("sha256", key);
  for (const part of parts) h.update(part);
  return h;
};
const schemes = {
  "standard-webhooks": () => ({
    "webhook-id": m.id,
    "webhook-timestamp": m.timestamp,
    "webhook-signature":
      "v1," + hmac(Buffer.from(m.secret.replace(/^whsec_/, ""), "base64"), `${m.id}.${m.timestamp}.`, body).digest("base64"),
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
