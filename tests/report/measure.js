/* measure.js - a script of the tests, not of the report: measures a page once it is laid out.  The labels of a chart must not meet,
 * nothing may stick out of its chart or of the page, every picture has a text, text has contrast to what is behind it. */
addEventListener('load', () => {
    const bad = [];
    for (const d of document.querySelectorAll('details')) d.open = true;
    for (const s of document.querySelectorAll('svg')) {
        const f = s.getBoundingClientRect();
        const t = [...s.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()]);
        t.forEach(([n, r], i) => {
            if (r.left < f.left - 1 || r.right > f.right + 1 || r.top < f.top - 1 || r.bottom > f.bottom + 1) bad.push('out: ' + n);
            t.slice(i + 1).forEach(([m, q]) => {
                if (r.left < q.right - .5 && q.left < r.right - .5 && r.top < q.bottom - 3 && q.top < r.bottom - 3)
                    bad.push(n + ' meets ' + m);
            });
        });
        if (!s.getAttribute('aria-label')) bad.push('a picture without a text');
    }
    const light = c => {
        const v = c.match(/[\d.]+/g).slice(0, 3).map(x => (x /= 255) <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
        return .2126 * v[0] + .7152 * v[1] + .0722 * v[2];
    };
    const behind = e => {
        for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor;
            if (!/rgba\(.*, 0\)|transparent/.test(c)) return c;
        }
        return 'rgb(255,255,255)';
    };
    /* The color of a mark that a label of a chart lies on, blended with what is behind the chart. */
    const under = e => {
        const r = e.getBoundingClientRect(), x = (r.left + r.right) / 2, y = (r.top + r.bottom) / 2;
        const hit = [...e.closest('svg').querySelectorAll('rect')].filter(m => {
            const q = m.getBoundingClientRect();
            return q.left <= x && x <= q.right && q.top <= y && y <= q.bottom;
        }).pop();
        const paper = behind(e);
        if (!hit) return paper;
        const s = getComputedStyle(hit), a = +s.fillOpacity, f = s.fill.match(/[\d.]+/g), g = paper.match(/[\d.]+/g);
        return 'rgb(' + [0, 1, 2].map(i => a * f[i] + (1 - a) * g[i]).join(',') + ')';
    };
    for (const e of document.querySelectorAll('h1,h2,h3,p,b,span,dt,dd,li,figcaption,th,td,code,a,summary,svg text')) {
        const own = [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim()), s = getComputedStyle(e);
        const r = e.getBoundingClientRect();
        if (own && r.width > 0) {
            const a = light(e.closest('svg') ? s.fill : s.color), b = light(e.closest('svg') ? under(e) : behind(e));
            if ((Math.max(a, b) + .05) / (Math.min(a, b) + .05) < 4.5) bad.push('little contrast: ' + e.textContent);
        }
        if (e.closest('.scroll') || e.closest('svg')) continue;
        if (r.right > innerWidth + 1 || r.left < -1) bad.push('off the page: ' + e.textContent);
        if (e.scrollWidth > e.clientWidth + 1 && s.display != 'inline') bad.push('clipped: ' + e.textContent);
    }
    if (document.documentElement.scrollWidth > innerWidth) bad.push('page too wide');
    const d = document.createElement('p');
    d.id = 'measured';
    d.textContent = '[' + bad.join(';') + ']';
    document.body.append(d);
});
