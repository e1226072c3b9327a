export { costOf, createChannelLink, kibibyteMs, patienceMs } from "./channel-link.ts";
