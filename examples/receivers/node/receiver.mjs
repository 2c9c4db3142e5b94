// A receiver of webhooks with nothing but Node. WEBHOOK_SECRET is the endpoint's.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const key = Buffer.from((process.env.WEBHOOK_SECRET ?? "").replace("whsec_", ""), "base64");
if (key.length < 24) throw new Error("WEBHOOK_SECRET is not a secret that begins with whsec_");
const seen = new Set(); // Keep the ids where the work is: in your database, in the same transaction.

function verified(body, { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": signatures = "" }) {
  const mine = Buffer.from("v1," + createHmac("sha256", key).update(`${id}.${at}.`).update(body).digest("base64"));
  const same = (theirs) => theirs.length === mine.length && timingSafeEqual(theirs, mine);
  return signatures.split(" ").some((s) => same(Buffer.from(s))) && Math.abs(Date.now() / 1000 - at) <= 300;
}

const server = createServer(async (req, res) => {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const body = Buffer.concat(chunks), id = req.headers["webhook-id"];
  if (!verified(body, req.headers)) return res.writeHead(401).end();
  if (seen.has(id)) return res.writeHead(200).end("duplicate");
  const event = JSON.parse(body);
  if (event.test) console.log("a test event; nothing has happened", id);
  else console.log(event.sequence, id); // The work goes here.
  seen.add(id);
  res.writeHead(204).end();
});
server.listen(process.env.PORT ?? 3000, "127.0.0.1", () => console.log("listening on", server.address().port));
