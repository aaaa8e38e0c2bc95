/* svg_style.c - chart colors, light and dark. No CSS variables, since programs other than browsers read the files too. */
#include "report/svg.h"

static const char style[] =
    "svg.st{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\n"
    ".st-bg{fill:#fff}.st-tt{font-size:14px;font-weight:600;fill:#17181a}.st-t{font-size:11px;fill:#5b5f66}\n"
    ".st-lg{font-size:12px;fill:#33363b}.st-g{stroke:#e6e7e9;stroke-width:1}.st-ax{stroke:#b4b8bf;stroke-width:1}\n"
    ".st-l{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.st-thin{stroke-width:1.2;"
    "stroke-opacity:.55}\n"
    ".st-b{stroke:none;fill-opacity:.17}.st-p{stroke:#fff;stroke-width:1.5}\n"
    ".st-h{fill-opacity:0;stroke:none}.st-h:hover{fill-opacity:.9}\n"
    ".st-l0{stroke:#2a6fd6}.st-f0{fill:#2a6fd6}.st-l1{stroke:#e0661f}.st-f1{fill:#e0661f}\n"
    ".st-l2{stroke:#128a62}.st-f2{fill:#128a62}.st-l3{stroke:#8d6fd1}.st-f3{fill:#8d6fd1}\n"
    ".st-l4{stroke:#9aa0a8}.st-f4{fill:#9aa0a8}.st-l5{stroke:#17181a}.st-f5{fill:#17181a}\n"
    ".st-l6{stroke:#9aa0a8}.st-f6{fill:#9aa0a8}.st-l7{stroke:#d19a00}.st-f7{fill:#d19a00}\n"
    ".st-l8{stroke:#c2478a}.st-f8{fill:#c2478a}.st-l9{stroke:#3b8f9e}.st-f9{fill:#3b8f9e}\n"
    ".st-l10{stroke:#7a6a55}.st-f10{fill:#7a6a55}\n"
    ".st-l1{stroke-dasharray:7 4}.st-l2{stroke-dasharray:2 4}.st-l3{stroke-dasharray:9 3 2 3}.st-l4{"
    "stroke-dasharray:1 3}\n"
    ".st-solid{stroke-dasharray:none}.st-fine{stroke-width:1.2}.st-mark{stroke:#17181a;stroke-width:2}\n"
    ".st-n{font-size:9.5px;fill:#17181a}.st-on{font-size:9.5px;fill:#000}\n"
    "@media screen and (prefers-color-scheme:dark){\n"
    ".st-bg{fill:#1b1d20}.st-tt{fill:#f1f2f3}.st-t{fill:#a3a8b0}.st-lg{fill:#d3d6da}.st-g{stroke:#2e3136}.st-ax{"
    "stroke:#575c64}\n"
    ".st-p{stroke:#1b1d20}.st-b{fill-opacity:.25}.st-mark{stroke:#f1f2f3}.st-n{"
    "fill:#fff}\n"
    ".st-l0{stroke:#5b9bf5}.st-f0{fill:#5b9bf5}.st-l1{stroke:#f08a4b}.st-f1{fill:#f08a4b}\n"
    ".st-l2{stroke:#35b88a}.st-f2{fill:#35b88a}.st-l3{stroke:#ac93ea}.st-f3{fill:#ac93ea}\n"
    ".st-l4{stroke:#7c828b}.st-f4{fill:#7c828b}.st-l5{stroke:#f1f2f3}.st-f5{fill:#f1f2f3}\n"
    ".st-l6{stroke:#7c828b}.st-f6{fill:#7c828b}.st-l7{stroke:#dfb136}.st-f7{fill:#dfb136}\n"
    ".st-l8{stroke:#e07fb2}.st-f8{fill:#e07fb2}.st-l9{stroke:#5fb4c4}.st-f9{fill:#5fb4c4}\n"
    ".st-l10{stroke:#b3a289}.st-f10{fill:#b3a289}}\n";

const char *svg_style(void) { return style; }
