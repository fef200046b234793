"use strict";
// A page of the history shows what has been decided since.
addEventListener("pageshow", (event) => { if (event.persisted) { location.reload(); } });
