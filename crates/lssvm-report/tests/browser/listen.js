// Stands first in the head of a page under test: remembers what goes wrong.
window.tested = { errors: [], saved: [], texts: [] };
window.addEventListener("error", (e) => tested.errors.push(String(e.message || e.target)), true);
window.addEventListener("unhandledrejection", (e) => tested.errors.push(String(e.reason)));
document.addEventListener("securitypolicyviolation", (e) =>
  tested.errors.push(`${e.violatedDirective}: ${e.blockedURI}`));
const create = URL.createObjectURL;
URL.createObjectURL = (blob) => {
  tested.saved.push({ type: blob.type, size: blob.size });
  if (blob.type === "image/svg+xml") blob.text().then((text) => tested.texts.push(text));
  return create.call(URL, blob);
};
// A download would leave the page.
HTMLAnchorElement.prototype.click = function () {
  if (!this.download) tested.errors.push("a file without a name");
};
