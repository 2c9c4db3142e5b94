"""A receiver of webhooks with nothing but Python. WEBHOOK_SECRET is the endpoint's."""
import base64, hmac, http.server, json, os, time

key = base64.b64decode(os.environ.get("WEBHOOK_SECRET", "").removeprefix("whsec_"))
if len(key) < 24:
    raise SystemExit("WEBHOOK_SECRET is not a secret that begins with whsec_")
seen = set()  # Keep the ids where the work is: in your database, in the same transaction.


def verified(body, id, at, signatures):
    mine = b"v1," + base64.b64encode(hmac.digest(key, f"{id}.{at}.".encode() + body, "sha256"))
    good = any([hmac.compare_digest(mine, s.encode()) for s in signatures.split()])
    return good and abs(time.time() - int(at)) <= 300


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        id, at, signatures = (self.headers[name] or "" for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
        status = 401 if not verified(body, id, at, signatures) else 200 if id in seen else 204
        if status == 204:
            event = json.loads(body)
            if event.get("test"):
                print("a test event; nothing has happened", id, flush=True)
            else:
                print(event["sequence"], id, flush=True)  # The work goes here.
            seen.add(id)
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Receiver)
print("listening on", server.server_port, flush=True)
server.serve_forever()
