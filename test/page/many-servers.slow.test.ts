// The admin page with no server and with many, whose names are as long and as hostile as a config lets them be.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startCliGateway } from "../gateway/support/cli-gateway.ts";
import { hasChromium, openBrowser } from "./support/browser.ts";

const lure = `<img src=x onerror="alert('run')">`;
const names = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => {
    if (index === 1) return lure;
    if (index === 2) return "служба".repeat(33).slice(0, 200);
    if (index === 3) return "x".repeat(200);
    return `server-${index}`;
  });

describe.skipIf(!hasChromium)("the admin page", () => {
  let folder: string;
  let browser: Browser;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "junctor-page-"));
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const isWide = (page: Page): Promise<boolean> =>
    page.evaluate<boolean>("document.documentElement.scrollWidth > document.documentElement.clientWidth");

  test.each([0, 1, 37, 500])("works with %i servers, on every width", async (count) => {
    // They are started when they are first called, which no test does.
    const lazy = { command: "no-such-program-anywhere" };
    const all = names(count);
    const config = {
      mcpServers: Object.fromEntries(all.map((name) => [name, lazy])),
      junctor: { defaults: { start: "lazy" }, admin: { port: 0 } },
    };
    const file = join(folder, `mcp-${count}.json`);
    writeFileSync(file, JSON.stringify(config));
    await using gateway = startCliGateway(file, "--port", "0");
    await gateway.port;
    await vi.waitUntil(() => gateway.output().includes("#key="), { timeout: 90_000 });
    const address = /http:\/\/127\.0\.0\.1:\d+\/#key=\S+/.exec(gateway.output())?.[0] ?? "";
    for (const width of [1440, 1024, 390]) {
      const context = await browser.newContext({ viewport: { width, height: 844 } });
      const page = await context.newPage();
      page.setDefaultTimeout(90_000);
      const faults: string[] = [];
      page.on("pageerror", (error) => faults.push(error.message));
      page.on("console", (message) => void (message.type() === "error" && faults.push(message.text())));
      page.on("dialog", (dialog) => faults.push(dialog.message()));
      await page.goto(address);
      if (count === 0) await page.getByRole("heading", { name: "Your gateway runs." }).waitFor();
      else await page.getByRole("heading", { name: "Everything is fine" }).waitFor();
      expect({ width, isWide: await isWide(page) }).toEqual({ width, isWide: false });
      await page.evaluate(`location.hash = "#/servers"`);
      if (count > 0) {
        await page.getByText(`Fine · ${count}`).waitFor();
        // Of a long table only the rows that are seen are there.
        expect(await page.locator(".servers-table tbody tr").count()).toBeLessThanOrEqual(60);
        await page.locator(".list-view > .scroller").evaluate((box) => {
          const scroller = box as unknown as { scrollTop: number; scrollHeight: number };
          scroller.scrollTop = scroller.scrollHeight;
        });
        await page
          .getByText(all.at(-1) ?? "", { exact: true })
          .first()
          .waitFor();
      } else await page.getByText("The config has no servers.").waitFor();
      expect({ width, isWide: await isWide(page) }).toEqual({ width, isWide: false });
      for (const name of all.slice(1, 4)) {
        await page.evaluate(`location.hash = ${JSON.stringify(`#/servers/${encodeURIComponent(name)}`)}`);
        await page.getByRole("heading", { name, exact: true, level: 1 }).waitFor();
        expect({ width, name, isWide: await isWide(page) }).toEqual({ width, name, isWide: false });
      }
      expect(await page.locator("img[src=x]").count()).toBe(0);
      expect({ width, faults }).toEqual({ width, faults: [] });
      await context.close();
    }
  });
});
