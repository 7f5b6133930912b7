// While a page loads, its elements arrive one by one and push each other about. So they are
// hidden until the page is ready: its script has run once, everything that the script drew
// has its code, its pictures, and its height, and that stays so for 12 frames. At most, that
// is five seconds after the title: an element that never gets ready must not hide the others.
{
  const root = document.documentElement;
  let titled, height, isDrawn = false, still = 0; // frames last longer on a busy machine
  root.classList.add("arriving");
  root.classList.toggle("projector", location.search.includes("projector=1"));
  const look = (now) => {
    const page = document.querySelector(".stMainBlockContainer");
    if (page?.querySelector("h1") || now > 6000) titled ??= now; // an error has no title
    // Later, parts of the page run again, again and again while a job goes on.
    isDrawn ||= titled && document.querySelector("[data-test-script-state=notRunning]");
    const isReady = isDrawn
      && !document.querySelector("[data-testid^=stSkeleton]")
      && [...document.images].every((image) => image.complete || !image.offsetParent)
      && [...document.querySelectorAll(".stPrintGraphic")] // charts
        .every((chart) => !chart.offsetParent || chart.offsetHeight)
      && height === page?.scrollHeight;
    height = page?.scrollHeight;
    still = isReady ? still + 1 : 0;
    if (still > 12 || now > titled + 5000) root.classList.remove("arriving");
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}
// On a phone, the menu covers the page, so it closes once somebody has chosen a page. A step of
// a batch is longer than the screen, so the next one is read from its beginning.
addEventListener("click", ({ target }) => {
  if (innerWidth >= 768) return;
  if (target.closest(".stSidebar a"))
    document.querySelector("[data-testid=stSidebarCollapseButton] button").click();
  if (target.closest(".st-key-step_buttons"))
    document.querySelector(".st-key-batch_step").scrollIntoView();
});
// Without this, a page would begin where the last one was scrolled to, if it is just as long.
const push = history.pushState;
history.pushState = function (...to) {
  const before = location.pathname;
  push.apply(this, to);
  if (location.pathname !== before) document.querySelector(".stMain")?.scrollTo(0, 0);
};
// An answer to a question or a guess counts, so the arrow keys only move along the answers,
// and Enter or the space bar answers. Otherwise, the first arrow key would answer.
const ANSWERS = "[class*=st-key-question_], [class*=st-key-line_], [class*=guess]";
addEventListener("keydown", (event) => {
  const option = event.target;
  if (option.type !== "radio" || !option.closest(ANSWERS)) return;
  const options = [...option.closest("[role=radiogroup]").querySelectorAll("input")];
  const way = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  if (way) options.at((options.indexOf(option) + way) % options.length).focus();
  else if (event.key === "Enter") option.click();
  else return;
  event.preventDefault();
  event.stopPropagation();
}, true);
// Streamlit says that its server is not responding, and asks for the internet, which a class
// doesn't need. Of the dialogs, only those that a page draws have blocks.
addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
  const dialog = document.querySelector(".stDialog:not(:has(.stVerticalBlock)) [role=dialog]");
  if (!dialog || document.querySelector("[data-test-connection-state=CONNECTED]")) return;
  const says = [
    "The app doesn't respond",
    "It may have been restarted, or the network has failed. Leave this page open: it goes on by "
      + "itself once the app is back. Waiting runs keep their places.",
  ];
  const texts = document.createTreeWalker(dialog, NodeFilter.SHOW_TEXT);
  for (const text of says) if (texts.nextNode()) texts.currentNode.nodeValue = text;
}).observe(document.body, { childList: true }));
// A control that goes away, as a button does once it has started something, hands the focus
// to the control that comes in its place. Otherwise, the next Tab would begin at the top.
{
  const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  const controls = (around) => [...around.querySelectorAll(CONTROLS)]
    .filter((control) => !control.disabled && control.offsetParent);
  // The control with the focus; what it is in, and its place there among all of its kind and
  // among all. A button comes in the place of a button: around it, a guess may go away, too.
  let held, places = [];
  const alike = (around, { tagName }) =>
    controls(around).filter((control) => control.tagName === tagName);
  addEventListener("focusin", ({ target }) => {
    held = target;
    places = [];
    for (let around = target.parentElement; around; around = around.parentElement)
      places.push([around, alike(around, target).indexOf(target), controls(around).indexOf(target)]);
  });
  addEventListener("pointerdown", () => { held = undefined; });
  new MutationObserver(() => {
    if (!held || held.isConnected) return;
    requestAnimationFrame(() => {
      if (!held || held.isConnected || document.activeElement !== document.body) return;
      let [around, place, among] = places.find(([around]) => around.isConnected);
      let all = alike(around, held);
      if (!all.length) [all, place] = [controls(around), among];
      all[Math.min(Math.max(place, 0), all.length - 1)]?.focus({ preventScroll: true });
    });
  }).observe(document, { childList: true, subtree: true });
}
// If the front end fails, the page stays white for good, and somebody in a class doesn't know
// that a reload helps. So the page is loaded again, but not again and again.
{
  const SECOND = 1000, LEAST_APART = 60 * SECOND;
  let wasDrawn = false, emptySince;
  setInterval(() => {
    const isEmpty = !document.getElementById("root")?.childElementCount;
    wasDrawn ||= !isEmpty;
    emptySince = isEmpty ? emptySince ?? Date.now() : undefined;
    if (!wasDrawn || !isEmpty || Date.now() - emptySince < 2 * SECOND) return;
    if (Date.now() - Number(sessionStorage.getItem("loaded_again")) < LEAST_APART) return;
    sessionStorage.setItem("loaded_again", Date.now());
    location.reload();
  }, SECOND);
}
