// The admin page in a real browser, served by `junctor serve` with a real server behind it.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { type CliGateway, startCliGateway } from "../gateway/support/cli-gateway.ts";
import { hasChromium, openBrowser } from "./support/browser.ts";

/** Where screenshots go: `node scripts/page-shots.mjs` sets it. */
const shots = process.env["PAGE_SHOTS"];
/** The views whose pictures a guide shows. */
const guide = readFileSync(join(import.meta.dirname, "../../docs/guides/see-your-gateway.md"), "utf8");
const pictured = new Set([...guide.matchAll(/page\/([\w-]+)\.png/g)].map(([, name]) => name));
const views = [
  "overview",
  "servers",
  "servers/demo",
  "servers/broken",
  "servers/odd/tools",
  "servers/broken/history",
  "servers/demo/config",
  "tools",
  "calls",
  "callers",
  "callers/ada",
  "waiting",
  "log",
  "settings",
  "settings/add",
  "settings/about",
];
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe.skipIf(!hasChromium)("the admin page", () => {
  let folder: string;
  let gateway: CliGateway;
  let browser: Browser;
  let address: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "junctor-page-"));
    const config = {
      mcpServers: {
        demo: { command: process.execPath, args: ["test/fixtures/page-server.mjs"] },
        broken: { command: "no-such-program-anywhere" },
        odd: { command: process.execPath, args: ["test/fixtures/children/refused-lists.mjs"] },
      },
      junctor: {
        keys: { ada: { env: "ADA_KEY" }, bob: { env: "BOB_KEY", allow: ["demo__add"] } },
        admin: { port: 0 },
      },
    };
    const file = join(folder, "mcp.json");
    writeFileSync(file, JSON.stringify(config));
    process.env["ADA_KEY"] = "key-of-ada-for-tests";
    process.env["BOB_KEY"] = "key-of-bob-for-tests";
    gateway = startCliGateway(file, "--port", "0");
    await gateway.port;
    await vi.waitUntil(() => gateway.output().includes("#key="), { timeout: 90_000 });
    address = /http:\/\/127\.0\.0\.1:\d+\/#key=\S+/.exec(gateway.output())?.[0] ?? "";
    browser = await openBrowser();
  });

  // Each page has an event stream open, and their number is limited.
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
  });

  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A fresh tab on the page. What goes wrong in it fails the test that uses it. */
  async function openPage(options: BrowserContextOptions = {}): Promise<{ page: Page; faults: string[] }> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(90_000); // On a busy machine everything takes longer.
    const faults: string[] = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => void (message.type() === "error" && faults.push(message.text())));
    page.on("dialog", (dialog) => {
      faults.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    await page.goto(address);
    await readyPage(page);
    return { page, faults };
  }

  /** The verdict stands there when everything was read. */
  const readyPage = (page: Page): Promise<void> =>
    page.getByRole("heading", { name: /(?:is|are) (?:down|fine|starting)|has a fault/ }).waitFor();

  const goTo = async (page: Page, view: string): Promise<void> => {
    await page.evaluate(`location.hash = ${JSON.stringify(`#/${view}`)}`);
    await page.locator("main h1").waitFor({ state: "attached" });
  };

  /** Opens a tool as a caller, in the view of tools. */
  const openTool = async (page: Page, name: string, caller = "ada"): Promise<void> => {
    await goTo(page, `tools/${encodeURIComponent(`tool:demo__${name}`)}?as=${caller}`);
    await page.getByRole("heading", { name: `demo ${name}`, level: 2 }).waitFor();
  };

  test("the key leaves the address bar, and a page without it asks for it", async () => {
    const { page, faults } = await openPage();
    expect(page.url()).not.toContain("key=");
    const other = await (await browser.newContext()).newPage();
    await other.goto(address.replace(/#.*/, ""));
    await other.getByLabel("Admin key").fill("wrong");
    await other.getByRole("button", { name: "Open" }).click();
    await other.getByText("does not know this key").waitFor();
    expect(faults).toEqual([]);
  });

  test("an address with another key, opened in the same tab, is taken and leaves the address bar", async () => {
    const { page } = await openPage();
    // The second one cannot be decoded.
    for (const wrong of ["wrong", "%"]) {
      await page.evaluate(`location.hash = "#key=${wrong}"`);
      await page.getByText("does not know this key").waitFor();
    }
    expect(page.url()).not.toContain("key=");
    await page.evaluate(`location.hash = ${JSON.stringify(new URL(address).hash)}`);
    await readyPage(page);
    expect(page.url()).not.toContain("key=");
  });

  test("a page for which there is no event stream left says so, and goes on when there is one", async () => {
    const others = new AbortController();
    const headers = { authorization: `Bearer ${address.replace(/.*#key=/, "")}` };
    const events = new URL("/api/events", address);
    for (let count = 0; count < 16; count++)
      expect((await fetch(events, { headers, signal: others.signal })).status).toBe(200);
    const page = await (await browser.newContext()).newPage();
    await page.goto(address);
    await page.getByText("Too many pages of this gateway are open").waitFor();
    others.abort();
    await readyPage(page);
  });

  test("the link that skips to the content stays in the view", async () => {
    const { page, faults } = await openPage();
    await page.getByRole("link", { name: "Skip to the content" }).press("Enter");
    expect(await page.evaluate<string>("document.activeElement.id")).toBe("content");
    await readyPage(page);
    expect(faults).toEqual([]);
  });

  test("things that are left out are shown with the reason", async () => {
    const { page, faults } = await openPage();
    await goTo(page, "servers/odd/tools");
    await page.getByText("Left out, because clients would refuse it").waitFor();
    await page.getByText("text-schema (tools): inputSchema is").waitFor();
    expect(faults).toEqual([]);
  });

  test("the chosen tool and the server stay when a caller is chosen", async () => {
    const { page, faults } = await openPage();
    await goTo(page, "tools?server=demo");
    await page.getByRole("link", { name: /^add/ }).click();
    await page.getByText("Choose a caller under").waitFor();
    await page.getByLabel("Seen as").selectOption("ada");
    await page.getByRole("button", { name: "Call", exact: true }).waitFor();
    await page.getByRole("heading", { name: "Tools of demo" }).waitFor();
    expect(faults).toEqual([]);
  });

  test("a resource that was read is named among the calls", async () => {
    const { page } = await openPage();
    await goTo(page, `tools/${encodeURIComponent("resource:odd://good")}?as=ada`);
    await page.getByRole("button", { name: "Read" }).click();
    await page.locator(".output .result, .output .trouble").first().waitFor();
    await goTo(page, "calls");
    await page.getByRole("row").filter({ hasText: "odd://good" }).first().waitFor();
  });

  test("calls of an earlier run of the gateway are gone from the page", async () => {
    const { page } = await openPage();
    await openTool(page, "add");
    const earlier = {
      id: "c999999",
      method: "earlier/run",
      era: "modern",
      state: "sent",
      at: 1,
      ms: 1,
      steps: [],
    };
    await page.route(
      "**/api/calls",
      (route) => route.fulfill({ json: { underway: [earlier], recent: [] } }),
      { times: 1 },
    );
    await page.route(
      "**/api/events",
      (route) => route.fulfill({ contentType: "text/event-stream", body: "event: hello\ndata: {}\n\n" }),
      { times: 1 },
    );
    await page.reload();
    await goTo(page, "calls");
    await page.getByText("earlier/run").waitFor();
    await page.getByText("earlier/run").waitFor({ state: "detached" });
  });

  test("a tool is called from a form made of its schema", async () => {
    const { page, faults } = await openPage();
    await openTool(page, "add");
    await page.getByLabel("a", { exact: true }).fill("2");
    await page.getByLabel("b", { exact: true }).fill("3");
    await page.getByRole("group", { name: "how" }).getByRole("button", { name: "loud" }).click();
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.locator(".result pre").first().waitFor();
    expect(await page.locator(".result pre").first().textContent()).toBe("5!");
    expect(faults).toEqual([]);
  });

  test("numbers and JSON are sent as they were typed", async () => {
    const { page, faults } = await openPage();
    await openTool(page, "add");
    await page.getByLabel("a", { exact: true }).pressSequentially("1.05");
    await page.getByLabel("b", { exact: true }).pressSequentially("-0.5");
    await page.getByLabel("more optional").pressSequentially("1.05");
    expect(await page.getByLabel("more optional").inputValue()).toBe("1.05");
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.getByText("0.55", { exact: true }).waitFor();
    await page.getByRole("group", { name: "Arguments as" }).getByRole("button", { name: "JSON" }).click();
    await page.getByRole("textbox", { name: "Arguments as JSON" }).fill("");
    await page.getByRole("textbox", { name: "Arguments as JSON" }).pressSequentially('{"a": 2.05, "b": 1}');
    expect(await page.getByRole("textbox", { name: "Arguments as JSON" }).inputValue()).toBe(
      '{"a": 2.05, "b": 1}',
    );
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.getByText("3.05", { exact: true }).waitFor();
    expect(faults).toEqual([]);
  });

  test("a tool that asks is answered in the page, and its call is seen to park and end", async () => {
    const { page, faults } = await openPage();
    await openTool(page, "greet");
    await page.getByRole("button", { name: "Call", exact: true }).click();
    const form = page.getByRole("form", { name: "The tool asks" });
    await form.getByText("Who are you?").waitFor();
    await form.getByLabel("Your name").fill("Grace");
    await form.getByRole("button", { name: "Answer" }).click();
    await page.getByText("Hello Grace").first().waitFor();
    await goTo(page, "calls");
    const row = page.getByRole("row").filter({ hasText: "demo greet" }).first();
    await row.getByText("ok", { exact: true }).waitFor();
    await row.getByRole("link").click();
    await page.getByRole("heading", { name: "Life of the call" }).waitFor();
    await page.getByText("The server asked").first().waitFor();
    await page.getByText("Grace").first().waitFor();
    expect(faults).toEqual([]);
  });

  test("progress and images are shown", async () => {
    const { page, faults } = await openPage();
    await openTool(page, "count");
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.getByText("number 3").waitFor();
    await page.getByText("counted").first().waitFor();
    await openTool(page, "draw");
    await page.getByRole("button", { name: "Call", exact: true }).click();
    const width = (): Promise<number> =>
      page.evaluate<number>(`document.querySelector(".result img").naturalWidth`);
    await page.locator(".result img").waitFor();
    await expect.poll(width).toBe(1);
    expect(faults).toEqual([]);
  });

  test("a server that dies is seen to go down and to come back", async () => {
    const { page } = await openPage();
    await openTool(page, "die");
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.getByRole("alert").waitFor();
    await goTo(page, "calls");
    const row = page.getByRole("row").filter({ hasText: "demo die" }).first();
    await row.click();
    await page
      .getByRole("complementary")
      .getByText(/can be made again|not known whether/)
      .waitFor();
    await goTo(page, "servers/demo");
    await page.getByText("Up", { exact: true }).waitFor();
    await page.getByText(/Started again/).waitFor();
  });

  test("a server that cannot be started says why, and what to do", async () => {
    const { page, faults } = await openPage();
    await page.getByRole("heading", { name: "1 server is down" }).waitFor();
    const trouble = page.getByRole("region", { name: "What is wrong" });
    await trouble.getByText("broken is down: ").waitFor();
    expect(await trouble.textContent()).toContain("no-such-program-anywhere");
    await trouble.getByRole("link", { name: "Open broken" }).click();
    await page.getByText("Down", { exact: true }).waitFor();
    await page.getByText('Install "no-such-program-anywhere"').first().waitFor();
    expect(faults).toEqual([]);
  });

  test("texts of a server are shown as text", async () => {
    const { page, faults } = await openPage();
    await openTool(page, "lure");
    await page.getByText("<script>").first().waitFor();
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.locator(".result pre").first().waitFor();
    await goTo(page, "calls");
    await page.getByRole("row").filter({ hasText: "demo lure" }).first().waitFor();
    expect(await page.locator("img[src=x], main script").count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test("a caller's view has what this caller may use, and nothing more", async () => {
    const { page, faults } = await openPage();
    await goTo(page, "tools?as=bob");
    await page.getByRole("link", { name: /^add/ }).waitFor();
    expect(await page.locator(".items a").count()).toBe(1);
    expect(faults).toEqual([]);
  });

  test("a field that is wrong says so beside it, and the bar leads there", async () => {
    const { page, faults } = await openPage();
    await openTool(page, "add");
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.getByText("2 fields to correct:").waitFor();
    expect(await page.evaluate<string>("document.activeElement.id")).toBe("argument-a");
    await page.getByLabel("a", { exact: true }).fill("2");
    await page.getByText("1 field to correct:").waitFor();
    await page.getByLabel("b", { exact: true }).fill("3");
    await page.getByRole("group", { name: "Arguments as" }).getByRole("button", { name: "JSON" }).click();
    await page.getByRole("textbox", { name: "Arguments as JSON" }).fill('{\n  "a": 1,\n  oops\n}');
    await page.getByText("This is not JSON: line 3, column 3.").waitFor();
    expect(faults).toEqual([]);
  });

  test("a form has fields for lists of objects, choices of several, unions, records and circles", async () => {
    const { page, faults } = await openPage();
    await openTool(page, "plan");
    await page.getByLabel("date optional").fill("2026-11-27");
    await page.getByLabel("north").check();
    await page.getByLabel("east").check();
    await page.getByRole("button", { name: "Add step" }).click();
    await page.getByRole("button", { name: "Add step" }).click();
    await page.getByLabel("title of step 1").fill("one");
    await page.getByLabel("title of step 2").fill("two");
    await page.getByLabel("owner of step 2").fill("ada@example");
    await page.getByLabel("owner of step 2").blur();
    await page.getByText("This is not a whole email address.").waitFor();
    await page.getByLabel("title of step 1").press("Alt+ArrowDown");
    await page.getByLabel("owner of step 1").fill("ada@example.com");
    await page.getByRole("button", { name: "Mail" }).click();
    await page.getByLabel("to", { exact: true }).fill("grace@example.com");
    await page.getByRole("button", { name: "Add a value" }).click();
    await page.getByLabel("Name 1").fill("team");
    await page.getByLabel("Value 1").fill("red");
    await page.getByLabel("name optional").first().fill("root");
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.locator(".result pre").first().waitFor();
    const text = (await page.locator(".result pre").first().textContent()) ?? "";
    expect(JSON.parse(text)).toEqual({
      date: "2026-11-27",
      where: ["north", "east"],
      steps: [{ title: "two", owner: "ada@example.com" }, { title: "one" }],
      notify: { to: "grace@example.com" },
      labels: { team: "red" },
      tree: { name: "root" },
      dry: true,
    });
    expect(faults).toEqual([]);
  });

  test("the palette finds a server and opens it, by keyboard alone", async () => {
    const { page, faults } = await openPage();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Find or do" }).pressSequentially("brok");
    await page.getByRole("option", { name: /broken.*Down/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "broken", level: 1 }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("c");
    await page.getByRole("heading", { name: "Calls", level: 1 }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    expect(faults).toEqual([]);
  });

  test("a filter of calls stands in the address, which finds the same calls again", async () => {
    const { page, faults } = await openPage();
    await openTool(page, "add");
    await page.getByLabel("a", { exact: true }).fill("1");
    await page.getByLabel("b", { exact: true }).fill("1");
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.locator(".result pre").first().waitFor();
    await goTo(page, "calls?server=demo&q=add");
    await page.getByRole("row").filter({ hasText: "demo add" }).first().click();
    await page.getByRole("heading", { name: "Arguments" }).waitFor();
    expect(page.url()).toMatch(/server=demo&q=add&call=c\d+/);
    await page.reload();
    await page.getByRole("heading", { name: "Arguments" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("complementary").waitFor({ state: "detached" });
    await goTo(page, "calls?q=nothing-is-called-this");
    await page.getByText("No call matches.").waitFor();
    expect(faults).toEqual([]);
  });

  test("nothing moves after the first paint", async () => {
    const { page } = await openPage();
    const moved = await page.evaluate<number>(`new Promise((resolve) => {
      let sum = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
      }).observe({ type: "layout-shift", buffered: true });
      requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => resolve(sum))));
    })`);
    expect(moved).toBeLessThanOrEqual(0.02);
  });

  test("a page of another origin can neither read nor act", async () => {
    const foreign = await serveEmptyPage();
    try {
      const page = await (await browser.newContext()).newPage();
      const { port } = foreign.address() as AddressInfo;
      await page.goto(`http://127.0.0.1:${port}/`);
      const [, base = "", key = ""] = /^(.*)\/#key=(.*)$/.exec(address) ?? [];
      const outcomes = await page.evaluate(
        async ({ base, key }) => {
          const attempt = (path: string, init: RequestInit): Promise<string> =>
            fetch(`${base}${path}`, init).then(
              async (answer) => `${answer.type} ${await answer.text()}`,
              () => "refused",
            );
          return Promise.all([
            attempt("/api/status", { headers: { authorization: `Bearer ${key}` } }),
            attempt("/api/status", {}),
            attempt("/metrics", {}),
            attempt("/metrics", { mode: "no-cors" }),
            attempt("/api/servers/demo/stop", { method: "POST", mode: "no-cors", body: "{}" }),
          ]);
        },
        { base, key },
      );
      expect(outcomes.map((text) => text.replace("opaque ", ""))).toEqual(
        outcomes.map((text) => (text === "refused" ? "refused" : "")),
      );
      const { page: own } = await openPage();
      await goTo(own, "servers/demo");
      await own.getByText("Up", { exact: true }).waitFor();
      const framed = await page.evaluate<number>(`new Promise((resolve) => {
        const frame = document.createElement("iframe");
        frame.src = ${JSON.stringify(base)};
        frame.addEventListener("load", () => resolve(frame.contentWindow.length));
        document.body.append(frame);
      })`);
      expect(framed).toBe(0);
      expect(page.frames().at(-1)?.url() ?? "").not.toContain(base);
    } finally {
      foreign.close();
    }
  });

  test.each([
    ["light", { colorScheme: "light", viewport: { width: 1440, height: 900 } }],
    ["dark", { colorScheme: "dark", viewport: { width: 1440, height: 900 } }],
    ["tablet", { colorScheme: "dark", viewport: { width: 1024, height: 768 } }],
    ["phone", { colorScheme: "light", viewport: { width: 390, height: 844 }, isMobile: true }],
  ] as const)("every view is accessible, %s", async (name, options) => {
    // The page's policy would keep axe out of it.
    const { page } = await openPage({ ...options, bypassCSP: true });
    const violations: string[] = [];
    for (const view of [...views, "tools/tool%3Ademo__add?as=ada"]) {
      await goTo(page, view);
      await page.locator(".skeleton").waitFor({ state: "detached" });
      // Colours that change take a moment.
      await page.evaluate("Promise.all(document.getAnimations().map((animation) => animation.finished))");
      await page.evaluate(axeSource);
      const found = await page.evaluate(async () => {
        const { axe } = globalThis as unknown as {
          axe: { run(): Promise<{ violations: readonly AxeViolation[] }> };
        };
        return (await axe.run()).violations.map(
          ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`,
        );
      });
      violations.push(...found.map((text) => `${view} ${text}`));
      const shown = view.startsWith("tools/") ? "tools-try" : view.replaceAll("/", "-");
      if (shots !== undefined && pictured.has(`${name}-${shown}`))
        await page.screenshot({ path: join(shots, `${name}-${shown}.png`) });
      const isWide = await page.evaluate<boolean>(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth",
      );
      expect(isWide, `${name} ${view} scrolls sideways`).toBe(false);
    }
    expect(violations).toEqual([]);
  });
});

interface AxeViolation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string }[];
}

async function serveEmptyPage(): Promise<Server> {
  const server = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>x</title><body></body>");
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return server;
}
