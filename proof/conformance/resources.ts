import { Buffer } from "node:buffer";
import { createResourceRegistry, type ResourceRegistry } from "junctor";
import { pixelPng } from "./samples.ts";

/** Text, bytes, a template, and one to subscribe to. */
export function createEverythingResources(): ResourceRegistry {
  const resources = createResourceRegistry();

  resources.register(
    "test://static-text",
    { name: "Static text", description: "A text that never changes", mimeType: "text/plain" },
    () => "This is the content of the static text resource.",
  );

  resources.register(
    "test://static-binary",
    { name: "Static binary", description: "An image that never changes", mimeType: "image/png" },
    () => Buffer.from(pixelPng, "base64"),
  );

  resources.register(
    "test://watched-resource",
    { name: "Watched resource", description: "A text to subscribe to", mimeType: "text/plain" },
    () => "Watched resource content",
  );

  resources.registerTemplate(
    "test://template/{id}/data",
    { name: "Template", description: "Data for any id", mimeType: "application/json" },
    ({ variables: { id } }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  );

  return resources;
}
