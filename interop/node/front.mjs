// A client of both fronts as an application would write it, on Node's own http and
// crypto: it creates a job and a task, waits for the callbacks of their ends and
// verifies them over the bytes that arrived. It prints one line of JSON.
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const { api, key, secret } = JSON.parse(process.argv[2]);
const same = (a, b) => a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
const fresh = (headers) => Math.abs(Date.now() / 1000 - Number(headers["x-webhook-timestamp"])) <= 300;
const hmac = (text) => createHmac("sha256", secret).update(text);

const verify = {
  "/media": (body, headers) => {
    const digest = createHash("sha256").update(body).digest("hex");
    const text = `${JSON.parse(body).data.taskId}.${headers["x-webhook-timestamp"]}.${digest}`;
    return fresh(headers) && same(headers["x-webhook-signature"], hmac(text).digest("base64"));
  },
  "/task": (body, headers) => {
    const text = Buffer.concat([Buffer.from(headers["x-webhook-timestamp"] + "."), body]);
    return fresh(headers) && same(headers["x-webhook-signature"], "sha256=" + hmac(text).digest("hex"));
  },
};

const ends = {};
const server = createServer(async (req, res) => {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const { data } = JSON.parse(body);
  const changed = Buffer.from(body); // Still JSON with the same ids: a digit of the largest number.
  changed[changed.lastIndexOf(/\d/.exec(body.toString("latin1"))[0].charCodeAt(0))] ^= 1;
  const report = { valid: verify[req.url](body, req.headers), changed: verify[req.url](changed, req.headers), state: data.state ?? data.status };
  res.writeHead(report.valid ? 200 : 401, { "content-type": "application/json" }).end('{"received":true}');
  if (["succeeded", "failed", "expired", "canceled"].includes(report.state)) ends[req.url] = report;
  if (Object.keys(ends).length === 2) await finish();
});

const call = async (method, path, body, headers = {}) => {
  const res = await fetch(api + path, { method, body: body && JSON.stringify(body), headers: { authorization: `Bearer ${key}`, ...headers } });
  return { status: res.status, ...(await res.json()) };
};

let job, task;
const finish = async () => {
  const record = await call("GET", `/api/v1/jobs/recordInfo?taskId=${job.data.taskId}`);
  const view = await call("GET", `/tasks/${task.task_id}`);
  console.log(JSON.stringify({ ends, job, task, record, view }));
  process.exit(0);
};

server.listen(0, "127.0.0.1", async () => {
  const base = `http://127.0.0.1:${server.address().port}`;
  const type = { "content-type": "application/json" };
  const input = { n: 0 };
  job = await call("POST", "/api/v1/jobs/createTask", { model: "sim/m", input, callBackUrl: base + "/media" }, { ...type, "idempotency-key": "a" });
  task = await call("POST", "/tasks", { upstream: "sim", model: "m", input: { n: 1 }, callback_url: base + "/task" }, type);
});
setTimeout(() => process.exit(1), 30000);
