// Asks the console's server, and nobody else.
export class AskError extends Error {
  constructor(text, status) { super(text); this.status = status; }
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new AskError("The console does not answer.", 0);
  }
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new AskError(told.text || answer.statusText, answer.status);
  return told;
}

const query = (asked) => (asked ? `?${new URLSearchParams(asked)}` : "");
const posted = (body) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export const get = (path, asked) => ask(`/api/${path}${query(asked)}`);
export const post = (path, body) => ask(`/api/${path}`, posted(body));
export const all = (path, asked) => get(`all/${path}`, asked);
export const one = (broker, path, asked) => get(`one/${encodeURIComponent(broker)}/${path}`, asked);
export const act = (broker, action, wish) => post(`one/${encodeURIComponent(broker)}/actions/${action}`, { ...wish, confirm: true });

// [[broker, answer]] of those that answered, and those that did not.
export function split(answers) {
  const good = [], bad = [];
  for (const [broker, told] of Object.entries(answers)) (told.ok ? good : bad).push([broker, told.ok ? told.body : told]);
  return { good, bad };
}
