// Submits an operation, waits for it and finds it in a list, with the client
// that was generated from the API's description beside this file.
import { getOperation, listOperations, submitOperation, type Operation } from "./client";
import { client } from "./client/client.gen";

declare const process: { argv: string[]; exit(status: number): never };

const [, , baseUrl, auth] = process.argv;
client.setConfig({ baseUrl, auth });

function insist<T>(value: T | undefined, why: unknown): T {
  if (value === undefined) {
    console.error(why);
    process.exit(1);
  }
  return value;
}

async function submit(key: string): Promise<Operation> {
  const answer = await submitOperation({
    headers: { "Idempotency-Key": key },
    body: { upstream: "sim", model: "m", input: { n: 0 }, metadata: { order: "o-7" } },
  });
  const made = insist(answer.data, answer.error);
  if (!("version" in made)) throw new Error("this was no dry run");
  return made;
}

async function wait(id: string): Promise<Operation> {
  for (let tries = 0; tries < 300; tries++) {
    const answer = await getOperation({ path: { id } });
    const operation = insist(answer.data, answer.error);
    switch (operation.state) {
      case "pending":
      case "unconfirmed":
      case "running":
        await new Promise((resolve) => setTimeout(resolve, 100));
        continue;
      default:
        return operation;
    }
  }
  throw new Error(`${id} did not end`);
}

async function main() {
  const first = await submit("generated-1");
  const repeat = await submit("generated-1");
  const ended = await wait(first.id);
  const found = await listOperations({ query: { page_size: 5, metadata: { "metadata.order": "o-7" } } });
  const items = insist(found.data, found.error).items;

  // The refusals are typed: a reason that this call does not have does not
  // compile.
  const refused = await submitOperation({ headers: { "Idempotency-Key": "generated-2" }, body: { upstream: "nobody", model: "m", input: {} } });
  const problem = insist(refused.error, "nothing was refused");
  const unknown = problem.status === 422 && problem.reason === "unknown_upstream";

  console.log(JSON.stringify({
    id: first.id, repeat: repeat.id, state: ended.state, task: ended.task_id, finished: ended.finished_at,
    listed: items.map((item) => item.id), unknown,
  }));
}

void main();
