import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hasChromium, openBrowser } from "../page/support/browser.ts";
import { askForLink, keys, startStage, textOf } from "./stage.ts";

let browser: Browser;

beforeAll(async () => {
  if (hasChromium) browser = await openBrowser();
}, 60_000);

afterAll(async () => {
  if (hasChromium) await browser.close();
});

test.skipIf(!hasChromium)(
  "a person connects an account in a real browser, whose rules about forms, cookies and frames hold",
  async () => {
    const stage = await startStage();
    const client = await stage.as("ada");
    const link = await askForLink(client);
    const context = await browser.newContext();
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on("console", (message) => complaints.push(message.text()));
    await page.goto(link);
    expect(await page.evaluate("getComputedStyle(document.body).maxWidth")).toBe("544px");
    await page.fill("input[name=key]", keys.ada);
    await page.click("button");
    await page.waitForSelector("text=You come back to");
    // The authorization server is another site to the browser: its redirect brings the cookie along all the same.
    await page.click("button");
    await page.waitForSelector("h1:text-is('Connected')");
    expect(await textOf(client, "safe__read")).toBe("read");
    const cookies = (await context.cookies()).map(({ name }) => name);
    expect(cookies.filter((name) => name.includes("junctor"))).toEqual([]);
    expect(complaints.filter((text) => text.includes("Content Security Policy"))).toEqual([]);
    const frame = await context.newPage();
    const bob = await stage.as("bob");
    await frame.route("http://frame.example/", (route) =>
      route.fulfill({ contentType: "text/html", body: `<iframe src="${bobsLink}"></iframe>` }),
    );
    const bobsLink = await askForLink(bob);
    await frame.goto("http://frame.example/");
    await frame.waitForLoadState("networkidle");
    expect(await frame.frames()[1]?.content()).not.toContain("Connect your account");
    await context.close();
  },
  120_000,
);
