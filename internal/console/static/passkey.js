// A form with data-passkey has the browser sign with a passkey, or make one, before it is sent.

function say(text) {
  const fault = document.getElementById("fault");
  fault.textContent = text;
  fault.hidden = false;
}

async function ask(form) {
  const options = JSON.parse(form.dataset.passkey).publicKey;

  if ("make" in form.dataset) {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
    return navigator.credentials.create({ publicKey });
  }

  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  return navigator.credentials.get({ publicKey });
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) {
    if (!("make" in form.dataset)) continue; // the password is left
    say("This browser is too old for passkeys.");
    continue;
  }

  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const signed = await ask(form);
      const field = "make" in form.dataset ? "new_passkey" : "confirm_passkey";
      form.elements[field].value = JSON.stringify(signed);
      form.submit();
    } catch (error) {
      say(`The passkey was not used: ${error.message}`);
    }
  });
}
