export type { ServerFacts } from "./controls.ts";
export type { OnServer } from "./fleet.ts";
export { createGateway, type Gateway, type RunningGateway, startGateway } from "./gateway.ts";
export type { GatewayOptions, StartOptions } from "./options.ts";
