// The live API, with the reader's token. The token is kept in this tab alone and sent as a header, never as a cookie.

const KEY = "kubenexus-token";
const fragment = new URLSearchParams(location.hash.slice(1));
if (fragment.has("token")) {
  sessionStorage.setItem(KEY, fragment.get("token"));
  history.replaceState(null, "", `${location.pathname}#/map`);
}

export class ApiProblem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const setToken = (token) => sessionStorage.setItem(KEY, token);

function headers(more = {}) {
  const token = sessionStorage.getItem(KEY);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

async function checked(answer) {
  if (answer.ok) return answer;
  let message = `the server answered ${answer.status}`;
  try {
    message = (await answer.json()).message || message;
  } catch {
    // not JSON: the status says enough
  }
  throw new ApiProblem(answer.status, message);
}

async function asked(path, options) {
  let answer;
  try {
    answer = await fetch(path, { ...options, credentials: "same-origin", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiProblem(0, "the server does not answer");
  }
  return checked(answer);
}

function address(path, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined));
  return query.size ? `/api/v1/${path}?${query}` : `/api/v1/${path}`;
}

export async function settings() {
  return (await asked("/web/settings.json", { headers: headers() })).json();
}

export async function get(path, parameters = {}, signal = undefined) {
  return (await asked(address(path, parameters), { headers: headers(), signal })).json();
}

export async function post(path, parameters, body, signal = undefined) {
  const sent = { method: "POST", headers: headers({ "Content-Type": "application/json" }), body: JSON.stringify(body), signal };
  return (await asked(address(path, parameters), sent)).json();
}

// Calls each(decision) for every server-sent event until the signal aborts; connects again when a stream ends.
export async function follow(path, parameters, signal, each, state) {
  while (!signal.aborted) {
    try {
      const answer = await asked(address(path, parameters), { headers: headers(), signal });
      state("live");
      await read(answer.body, each);
    } catch (error) {
      if (signal.aborted) return;
      state(error.message);
    }
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

async function read(body, each) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data: ")) each(JSON.parse(line.slice(6)));
  }
}
