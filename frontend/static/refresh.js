"use strict";
// Keeps elements with data-refresh="ADDRESS" data-every-s="N" up to date: fetches the element anew
// and puts it in its place, until what comes back has no data-refresh any more. Rests while the page
// is hidden or paused. When the element's data-say changes, screen readers are told, and only then.

const pause = document.querySelector("[data-pause]");
const statusLine = document.querySelector("[data-status]");
let paused = false;

function resting() {
  return paused || document.hidden;
}

// A focused link is not torn away: it gets the focus back, or the update waits.
function exchange(element, fresh) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const again = focused && fresh.querySelector(`a[href="${CSS.escape(focused.getAttribute("href") || "")}"]`);
  if (focused && !again) return element;
  element.replaceWith(fresh);
  if (again) again.focus({ preventScroll: true });
  if (statusLine && fresh.dataset.say !== element.dataset.say) statusLine.textContent = fresh.dataset.say;
  return fresh;
}

async function keepFresh(element) {
  while (element.dataset.refresh) {
    await new Promise((resolve) => setTimeout(resolve, 1000 * element.dataset.everyS));
    if (resting()) continue;
    try {
      const answer = await fetch(element.dataset.refresh, { headers: { Accept: "text/html" } });
      if (!answer.ok) continue;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.body.firstElementChild;
      if (fresh && fresh.outerHTML !== element.outerHTML) element = exchange(element, document.adoptNode(fresh));
    } catch {
      continue; // the service is away for a moment
    }
  }
}

for (const element of document.querySelectorAll("[data-refresh]")) keepFresh(element);

if (pause) {
  pause.closest("[data-live]").hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Updates are paused: go on" : "Pause updates";
  });
}
