// Pauses the list of requests, and says when the gateway cannot be reached.
"use strict";
const button = document.getElementById("pause");
const live = document.getElementById("live");
let paused = false;

function say(text) {
  if (live && live.textContent !== text) live.textContent = text;
}

if (button) {
  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Go on" : "Pause";
    say(paused ? "Paused" : "New ones come by themselves");
  });
}

document.body.addEventListener("htmx:beforeRequest", (event) => {
  if (paused || document.hidden) event.preventDefault();
});
for (const failure of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  document.body.addEventListener(failure, () => say("The gateway does not answer; it is tried again"));
}
document.body.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful && !paused) say("New ones come by themselves");
});
