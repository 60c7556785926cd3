import "@fontsource/ibm-plex-sans/latin-400.css";
import "@fontsource/ibm-plex-sans/latin-600.css";
import "@fontsource/ibm-plex-mono/latin-400.css";
import "./style.css";
import { App } from "./view/app.ts";

const place = document.getElementById("app");
if (place !== null) void new App(place).start();
