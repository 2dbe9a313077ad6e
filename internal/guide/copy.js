// Puts a button beside each example that is typed or kept as a file: it copies the example. Where
// the browser lets no page copy, there is none.
if (navigator.clipboard) {
  for (const block of document.querySelectorAll("pre.sh, pre.python")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(block.querySelector("code").textContent);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not copied";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.before(button);
  }
}
