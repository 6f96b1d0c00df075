// The alarm: this ledger is not the one that this browser remembers. It stays until somebody lets it forget.
import { forget, recalled } from "./memory.js";
import { counted, inWords, node } from "./page.js";

export const ago = (time) => {
  const seconds = (Date.now() - time) / 1000;
  return seconds < 1 ? "just now" : `${inWords(seconds)} ago`;
};

const REASONS = {
  rollback: ({ before, after }) =>
    `Its log had ${counted(before.size, "block")} then, and has ${counted(after.size, "block")} now: blocks are gone.`,
  fork: ({ before, after }) =>
    `Its log had ${counted(before.size, "block")} then. The ${counted(after.size, "block")} that it shows now do not begin with those: earlier blocks were replaced.`,
  key: ({ before, after }) => `Its key was ${before.key} then, and is ${after.key} now; the old key has not signed the new one.`,
  origin: ({ before, after }) => `It was the log ${before.origin} then, and is ${after.origin} now: this is a different chain.`,
};

const ADVICE = "This happens when a backup is restored, when a new chain replaces the old one, or when somebody " +
  "changes records. Before you trust these pages, ask the operator of the ledger in some other way than through them.";
const LOSS = "Then this browser can no longer tell that the ledger has changed, and will accept the ledger as it is now. " +
  "Do this only if you know why the ledger has changed.";

function questions(section) {
  const ask = node("button", { type: "button", class: "quiet" }, "Forget what this browser remembers");
  const sure = node("button", { type: "button" }, "Yes, forget it");
  const keep = node("button", { type: "button", class: "quiet" }, "No, keep the alarm");
  const before = node("p", {}, ask);
  const after = node("div", { hidden: "" }, node("p", {}, LOSS), node("p", { class: "paging" }, sure, keep));
  const turn = (isAsked) => {
    [before.hidden, after.hidden] = [isAsked, !isAsked];
    (isAsked ? keep : ask).focus();
  };
  ask.addEventListener("click", () => turn(true));
  keep.addEventListener("click", () => turn(false));
  sure.addEventListener("click", () => {
    forget();
    section.remove();
    location.reload();
  });
  return [before, after];
}

// Shows the alarm that is kept, if there is one.
export function showAlarm() {
  const { alarm } = recalled() ?? {};
  document.getElementById("alarm")?.remove();
  if (!(alarm?.kind in REASONS)) return;
  const section = node("section", { id: "alarm", class: "notice bad", role: "alert" });
  section.append(
    node("p", {}, node("strong", {}, `This ledger is not the one that this browser saw ${ago(alarm.before.time)}.`), ` ${REASONS[alarm.kind](alarm)}`),
    node("p", {}, `${ADVICE} Noticed ${ago(alarm.time)}.`),
    ...questions(section),
  );
  document.querySelector("main").prepend(section);
}

showAlarm(); // on every page
