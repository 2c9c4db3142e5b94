// A receiver of webhooks with the official library: npm install standardwebhooks.
// WEBHOOK_SECRET is the endpoint's.
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

if (!process.env.WEBHOOK_SECRET) throw new Error("WEBHOOK_SECRET is not set");
const webhook = new Webhook(process.env.WEBHOOK_SECRET);
const seen = new Set(); // Keep the ids where the work is: in your database, in the same transaction.

const server = createServer(async (req, res) => {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const id = req.headers["webhook-id"];
  let event;
  try {
    event = webhook.verify(Buffer.concat(chunks), req.headers);
  } catch {
    return res.writeHead(401).end();
  }
  if (seen.has(id)) return res.writeHead(200).end("duplicate");
  if (event.test) console.log("a test event; nothing has happened", id);
  else console.log(event.sequence, id); // The work goes here.
  seen.add(id);
  res.writeHead(204).end();
});
server.listen(process.env.PORT ?? 3000, "127.0.0.1", () => console.log("listening on", server.address().port));
