// A receiver as an application would write it: the official Standard Webhooks
// library, Node's crypto for the other schemes and for v1a, which that library
// skips. It prints the address it listens on, then one line of JSON for each
// delivery.
import { createHash, createHmac, createPublicKey, timingSafeEqual, verify as verifySignature } from "node:crypto";
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const secrets = JSON.parse(process.argv[2]); // {"/path": {scheme, secret}}
const same = (a, b) => a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

const publicKey = (text) =>
  createPublicKey({
    format: "jwk",
    key: { kty: "OKP", crv: "Ed25519", x: Buffer.from(text.replace(/^whpk_/, ""), "base64").toString("base64url") },
  });

const verify = {
  "standard-webhooks": (body, headers, secret) => new Webhook(secret).verify(body.toString("utf8"), headers),
  "standard-webhooks-v1a": (body, headers, key) => {
    const text = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), body]);
    const signatures = headers["webhook-signature"].split(" ").filter((token) => token.startsWith("v1a,"));
    if (!signatures.some((token) => verifySignature(null, text, publicKey(key), Buffer.from(token.slice(4), "base64"))))
      throw new Error("signature");
  },
  "media-v2": (body, headers, secret) => {
    const timestamp = headers["x-webhook-timestamp"];
    const digest = createHash("sha256").update(body).digest("hex");
    const task = JSON.parse(body).data.taskId;
    const mine = createHmac("sha256", secret).update(`${task}.${timestamp}.${digest}`).digest("base64");
    if (!same(headers["x-webhook-signature"] ?? "", mine)) throw new Error("signature");
  },
  "body-timestamp": (body, headers, secret) => {
    const timestamp = headers["x-webhook-timestamp"];
    const mine = "sha256=" + createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
    if (!same(headers["x-webhook-signature"] ?? "", mine)) throw new Error("signature");
  },
};

const server = createServer(async (req, res) => {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const { scheme, secret } = secrets[req.url];
  let valid = true;
  try {
    verify[scheme](body, req.headers, secret);
  } catch {
    valid = false;
  }
  console.log(JSON.stringify({ path: req.url, valid, body: body.toString("utf8"), tokens: (req.headers["webhook-signature"] ?? "").split(" ").length }));
  res.writeHead(valid ? 204 : 401).end();
});
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));
process.stdin.resume().on("end", () => process.exit(0));
