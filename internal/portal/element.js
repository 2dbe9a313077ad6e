// <flexd-household> shows a household's cars as they are tonight, by a component token: what each does and until when,
// the prices that its plan was made on, and buttons to charge at once and to go back to the plan.
//
//   <script type="module" src="https://flexd.example/balance/element.js"></script>
//   <flexd-household site="…" token="…" lang="en"></flexd-household>
//
// It asks the flexd that it came from. Where the token is none any more it sends the event flexd-token; set
// element.token to a new one. Colours: --flexd-accent, --flexd-ink, --flexd-paper.
const words = {/* words */}
const from = new URL(import.meta.url).origin
const every = 60_000

const sheet = new CSSStyleSheet()
sheet.replaceSync(`
  :host { display: block; font: 1rem/1.5 system-ui, sans-serif; color: var(--flexd-ink, CanvasText); background: var(--flexd-paper, transparent); }
  section { margin: 0 0 1.5rem; }
  h3 { font-size: 1.0625rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
  p { margin: 0 0 .5rem; }
  svg { display: block; width: 100%; height: 7rem; }
  rect { fill: none; stroke: currentColor; stroke-width: 1; vector-effect: non-scaling-stroke; opacity: .6; }
  rect.on { fill: var(--flexd-accent, #0b6e4f); stroke: var(--flexd-accent, #0b6e4f); opacity: 1; }
  rect.unpriced { fill-opacity: .5; stroke-dasharray: 3; }
  p.ends { display: flex; justify-content: space-between; }
  button { font: inherit; min-height: 2.75rem; padding: 0 1rem; }
`)

class FlexdHousehold extends HTMLElement {
  static observedAttributes = ["site", "token", "lang"]

  constructor() {
    super()
    this.attachShadow({mode: "open"}).adoptedStyleSheets = [sheet]
  }

  connectedCallback() {
    this.timer = setInterval(() => this.refresh(), every)
    this.refreshSoon()
  }

  disconnectedCallback() { clearInterval(this.timer) }

  attributeChangedCallback() { if (this.isConnected) this.refreshSoon() }

  // refreshSoon has what is set in one go, as site, token and lang are by a page's markup, asked for once.
  refreshSoon() {
    if (this.waiting) return
    this.waiting = true
    queueMicrotask(() => {
      this.waiting = false
      if (this.isConnected) this.refresh()
    })
  }

  get token() { return this.getAttribute("token") }

  set token(token) { this.setAttribute("token", token) }

  // language is the element's, else the browser's first that there is.
  get language() {
    const asked = [this.lang, ...navigator.languages].map((tag) => tag.toLowerCase().split("-")[0])
    return asked.find((tag) => words[tag]) ?? "en"
  }

  say(name, ...parts) {
    return parts.reduce((text, part, i) => text.replaceAll(`{${i + 1}}`, part), words[this.language][name])
  }

  // ask asks flexd. It returns undefined for what is not there.
  async ask(path, body) {
    const request = {headers: {Authorization: `Bearer ${this.token}`}}
    if (body) {
      request.method = "POST"
      request.headers["Content-Type"] = "application/json"
      request.body = JSON.stringify(body)
    }

    const answer = await fetch(from + path, request)
    if (answer.status === 401) {
      this.dispatchEvent(new CustomEvent("flexd-token", {bubbles: true, composed: true}))
    }
    if (answer.status === 404) return undefined
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`)
    return answer.status === 204 ? null : answer.json()
  }

  async refresh() {
    const turn = this.turn = (this.turn ?? 0) + 1
    if (!this.getAttribute("site") || !this.token) {
      this.show([this.text("p", this.say("incomplete"))])
      return
    }

    try {
      const site = await this.ask(`/entities/site/${encodeURIComponent(this.getAttribute("site"))}/live`)
      if (!site) throw new Error("the token may see no such site")
      const cars = site.assets.filter((a) => a.type === "charger" || a.type === "electric_vehicle")
      const shown = await Promise.all(cars.map((a) => this.car(a, new Date(site.as_of))))
      if (turn === this.turn) this.show(shown.length ? shown : [this.text("p", this.say("none"))])
    } catch (wrong) {
      if (turn === this.turn) this.show([this.text("p", this.say("broken"))])
      console.warn("flexd-household:", wrong.message)
    }
  }

  show(nodes) {
    this.shadowRoot.replaceChildren(...nodes)
    this.dispatchEvent(new CustomEvent("flexd-shown"))
  }

  text(tag, text) {
    const node = document.createElement(tag)
    node.textContent = text
    return node
  }

  // clock is the time of day in London. In the hour that comes twice, the zone's name says which of the two it is.
  clock(at) {
    const form = {hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "Europe/London"}
    const clock = new Intl.DateTimeFormat(this.language, form)
    const moment = new Date(at)
    const text = clock.format(moment)
    const twice = [-3_600_000, 3_600_000].some((step) => clock.format(new Date(moment.getTime() + step)) === text)
    if (!twice) return text

    const parts = new Intl.DateTimeFormat("en-GB", {...form, timeZoneName: "short"}).formatToParts(moment)
    return `${text} ${parts.find(({type}) => type === "timeZoneName").value}`
  }

  number(value) { return new Intl.NumberFormat(this.language, {maximumFractionDigits: 1}).format(value) }

  // pounds is an amount of money, which is written alike in all languages.
  pounds(pence) { return `£${(pence / 100).toFixed(2)}` }

  // car is the part of the page about one asset.
  async car(asset, now) {
    const section = document.createElement("section")
    section.append(this.text("h3", asset.external_id))
    const plan = asset.plugged_in && asset.generation ? await this.ask(`/entities/asset/${asset.asset_id}/schedule/explanation`) : undefined
    const atOnce = asset.charge_now_until && new Date(asset.charge_now_until) > now
    const over = plan && Date.parse(asset.ready_by) <= now && !atOnce
    for (const line of over ? [this.say("over", this.clock(asset.ready_by))] : this.sentences(asset, plan, now)) section.append(this.text("p", line))
    if (plan && !over) section.append(...this.picture(plan))

    // without a plan it is not controlled: it charges as it likes
    if (asset.plugged_in && (plan || atOnce)) {
      section.append(atOnce
        ? this.button("back", asset, "charge-now-deleted", () => ({}))
        : this.button("now", asset, "charge-now", () => ({end_at: new Date(now.getTime() + 3_600_000).toISOString()})))
    }

    return section
  }

  // sentences say what a car does, or has done by its plan.
  sentences(asset, plan, now) {
    if (!asset.plugged_in) return [this.say("none")]
    if (!plan) return [this.say("unplanned")]

    const by = asset.ready_by ? this.clock(asset.ready_by) : ""
    const spans = []
    for (const p of plan.periods.filter((p) => p.energy_kwh > 0)) {
      const last = spans.at(-1)
      if (last?.to === p.start_timestamp) last.to = p.end_timestamp
      else spans.push({from: p.start_timestamp, to: p.end_timestamp})
    }

    const short = plan.plan.shortfall_kwh > 0 ? [this.say("short", this.number(plan.plan.shortfall_kwh), by)] : []
    if (!spans.length) return [this.say("nothing"), ...short]
    const when = spans.map((s) => this.say("span", this.clock(s.from), this.clock(s.to))).join(", ")
    const past = Date.parse(spans.at(-1).to) <= now
    const lines = [this.say(past ? "charged" : "charges", when, this.number(plan.plan.energy_kwh), by), ...short]
    const known = plan.periods.every((p) => !(p.energy_kwh > 0) || p.price_gbp_per_mwh !== null)
    if (known) {
      const pence = Math.round(plan.plan.cost_pence)
      lines.push(this.say(pence < 0 ? "brings" : "cost", this.pounds(Math.abs(pence))))
    }
    return lines
  }

  // picture is the prices of the plan, filled where the car charges, with the times at its ends. Where it charges at
  // no known price the bar is as high as the picture.
  picture(plan) {
    const shown = plan.periods.filter((p) => p.price_gbp_per_mwh !== null || p.energy_kwh > 0)
    if (!shown.length) return []
    const [first, last] = [shown[0].start_timestamp, shown.at(-1).end_timestamp]
    const start = Date.parse(first)
    const length = Date.parse(last) - start
    const prices = shown.map((p) => p.price_gbp_per_mwh ?? 0)
    const [least, most] = [Math.min(0, ...prices), Math.max(1, ...prices)]
    const y = (price) => 100 * (most - price) / (most - least)

    const make = (tag, attributes) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", tag)
      for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value)
      return node
    }
    const svg = make("svg", {viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": this.say("picture")})
    for (const p of shown) {
      const x = 1000 * (Date.parse(p.start_timestamp) - start) / length
      const width = 1000 * (Date.parse(p.end_timestamp) - Date.parse(p.start_timestamp)) / length
      const price = p.price_gbp_per_mwh ?? most
      const [top, foot] = [y(Math.max(0, price)), y(Math.min(0, price))]
      const kind = p.price_gbp_per_mwh === null ? "on unpriced" : p.energy_kwh > 0 ? "on" : "off"
      svg.append(make("rect", {x, width, y: top, height: Math.max(1, foot - top), class: kind}))
    }

    const ends = document.createElement("p")
    ends.className = "ends"
    ends.append(this.text("span", this.clock(first)), " ", this.text("span", this.clock(last)))
    const unpriced = shown.some((p) => p.price_gbp_per_mwh === null)
    return unpriced ? [svg, ends, this.text("p", this.say("unpriced"))] : [svg, ends]
  }

  button(name, asset, event, body) {
    const node = this.text("button", this.say(name))
    node.type = "button"
    const broken = this.text("p", this.say("broken"))
    broken.setAttribute("role", "alert")
    node.addEventListener("click", async () => {
      node.disabled = true
      broken.remove()
      try {
        const answer = await this.ask(`/entities/asset/${asset.asset_id}/event/${event}`, body())
        if (answer === undefined) throw new Error("the token may see no such asset")
      } catch (wrong) {
        console.warn("flexd-household:", wrong.message)
        node.disabled = false
        node.after(broken)
        return
      }
      await this.refresh()
    })
    return node
  }
}

customElements.define("flexd-household", FlexdHousehold)
