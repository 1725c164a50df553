import { serverSentData } from "./sse.js";

// What the server refused, or why it could not be asked. `status` is 0 without an answer.
export class ServerProblem extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

async function problemOf(response) {
  let message = `The server answered with status ${response.status}.`;
  try {
    message = JSON.parse(await response.text()).error.message ?? message;
  } catch {
    // Not the server's form: a proxy's page, say.
  }
  return new ServerProblem(message, response.status);
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerProblem("The server cannot be reached. Is it running?");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

// {id, maxLength} of the model that is served.
export async function readModel(headers) {
  const { data } = await (await ask("v1/models", { headers })).json();
  return { id: data[0].id, maxLength: data[0].max_model_len ?? null };
}

// What requests may choose, from the server's own description: {methods: names of drafters,
// maxDrafts}.
export async function readOffer(headers) {
  const { components } = await (await ask("openapi.json", { headers })).json();
  const speculative = components.schemas.Speculative;
  const offer = { methods: [], maxDrafts: 0 };
  for (const form of speculative.anyOf ?? [speculative]) {
    const { method, num_speculative_tokens: count } = form.properties;
    for (const kind of method.anyOf ?? [method]) {
      offer.methods.push(...(kind.enum ?? []).filter((name) => name));
    }
    for (const kind of count.anyOf ?? [count]) {
      offer.maxDrafts = Math.max(offer.maxDrafts, kind.maximum ?? 0);
    }
  }
  return offer;
}

// The chunks of one streamed chat answer. Throws when the answer breaks off.
export async function* chatChunks(body, headers, signal) {
  const response = await ask("v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
    signal,
  });
  try {
    for await (const data of serverSentData(response)) {
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ServerProblem(chunk.error.message, chunk.error.code);
      yield chunk;
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof ServerProblem) throw error;
    throw new ServerProblem("The connection to the server broke off.");
  }
  throw new ServerProblem("The server ended the answer before its end.");
}
