"""JavaScript for ``page.evaluate`` that inspects a page; each function takes a selector."""

from __future__ import annotations

WIDER_THAN_THE_SCREEN = """selector => {
    const width = document.documentElement.clientWidth;
    const scrolls = element => {
        for (let e = element; e !== document.body; e = e.parentElement)
            if (['auto', 'scroll'].includes(getComputedStyle(e).overflowX)) return true;
        return false;
    };
    const found = [];
    if (document.documentElement.scrollWidth > width)
        found.push('the page is ' + document.documentElement.scrollWidth + ' px wide');
    for (const element of document.querySelectorAll(selector)) {
        const box = element.getBoundingClientRect();
        if (box.width && box.right > width + 1 && !scrolls(element))
            found.push(element.tagName + ' to ' + box.right + ': ' + element.innerText);
    }
    return found.slice(0, 5).map(text => text.slice(0, 120));
}"""
"""Function that returns the first elements wider than the screen that cannot be scrolled to."""

HARD_TO_READ = """selector => {
    const channels = text => {
        const found = text.match(/[\\d.]+/g).map(Number);
        return found.length < 4 ? [...found, 1] : found;
    };
    const over = (front, back) =>
        front.slice(0, 3).map((value, i) => value * front[3] + back[i] * (1 - front[3]));
    const luminance = colour => {
        const [red, green, blue] = colour.map(value => {
            value /= 255;
            return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const background = element => {
        const layers = [];
        for (; element; element = element.parentElement)
            layers.unshift(channels(getComputedStyle(element).backgroundColor));
        return layers.reduce((below, layer) => over(layer, below), [255, 255, 255]);
    };
    const found = new Set();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement;
        const style = getComputedStyle(element);
        if (!texts.currentNode.data.trim()) continue;
        if (!element.closest(selector)) continue;
        if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
        if (style.fontSize === '0px') continue;
        const behind = background(element);
        const lights = [luminance(over(channels(style.color), behind)), luminance(behind)];
        const contrast = (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05);
        if (contrast < 4.5)
            found.add(element.tagName + '.' + element.className + ' ' + contrast.toFixed(2));
    }
    return [...found];
}"""
"""Function that returns the texts with a contrast below 4.5 to 1."""
