'use strict';
(function () {
  var holder = document.getElementById('pairs');
  var source = document.getElementById('pairs-data');
  if (!holder || !source) return;
  var d = JSON.parse(source.textContent), n = d.names.length, marked = null;
  var letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_', code = {};
  for (var i = 0; i < 64; i++) code[letters[i]] = i;
  // Values are of two letters, row after row: 0..4094 from the lowest to the highest of a column, 4095 outside.
  function decode(text) {
    var out = new Uint16Array(text.length / 2);
    for (var k = 0; k < out.length; k++) out[k] = code[text[2 * k]] * 64 + code[text[2 * k + 1]];
    return out;
  }
  var sets = [decode(d.data), decode(d.draws)];
  var menus = [document.getElementById('pair-x'), document.getElementById('pair-y')];
  menus.forEach(function (menu, axis) {
    d.names.forEach(function (name, k) {
      var option = document.createElement('option');
      option.value = k;
      option.textContent = name;
      menu.appendChild(option);
    });
    menu.value = Math.min(d.start[axis], n - 1);
    menu.addEventListener('change', function () { marked = null; draw(); });
  });
  function round(low, high, count) {
    var rough = (high - low) / count, power = Math.pow(10, Math.floor(Math.log10(rough))), r = rough / power;
    return (r < 1.5 ? 1 : r < 3.5 ? 2 : r < 7.5 ? 5 : 10) * power;
  }
  function text(value, step) {
    if (Math.abs(value) < step * 1e-6) return '0';
    var size = Math.max(Math.abs(value), step);
    if (size >= 1e6 || step < 1e-4) return value.toExponential(1).replace('-', '\u2212').replace('e+', 'e');
    return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9))).replace('-', '\u2212');
  }
  function paint(canvas, set, x, y, style, colour) {
    var ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight, g = canvas.getContext('2d');
    if (!w || !h) return 0;
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    var left = 58, right = 10, top = 8, bottom = 42, wide = w - left - right, high = h - top - bottom;
    var low = [d.low[x], d.low[y]], top2 = [d.high[x], d.high[y]], shown = 0;
    function px(v) { return left + (v - low[0]) / (top2[0] - low[0]) * wide; }
    function py(v) { return top + (top2[1] - v) / (top2[1] - low[1]) * high; }
    g.font = '12px system-ui, "DejaVu Sans", sans-serif';
    g.lineWidth = 1;
    g.strokeStyle = style.getPropertyValue('--grid');
    g.fillStyle = style.getPropertyValue('--soft');
    for (var axis = 0; axis < 2; axis++) {
      var step = round(low[axis], top2[axis], axis ? 6 : Math.max(2, Math.floor(wide / 75))), k = Math.ceil(low[axis] / step - 1e-9);
      for (; k * step <= top2[axis] + 1e-9 * step; k++) {
        var v = k * step;
        g.beginPath();
        if (axis) { g.moveTo(left, py(v)); g.lineTo(left + wide, py(v)); } else { g.moveTo(px(v), top); g.lineTo(px(v), top + high); }
        g.stroke();
        g.textAlign = axis ? 'right' : 'center';
        if (axis) g.fillText(text(v, step), left - 6, py(v) + 4); else g.fillText(text(v, step), px(v), top + high + 16);
      }
    }
    g.strokeStyle = style.getPropertyValue('--rule');
    g.strokeRect(left, top, wide, high);
    g.fillStyle = style.getPropertyValue('--ink');
    g.textAlign = 'center';
    g.fillText(d.names[x].slice(0, 60), left + wide / 2, h - 6, wide);
    g.save();
    g.translate(12, top + high / 2);
    g.rotate(-Math.PI / 2);
    g.fillText(d.names[y].slice(0, 60), 0, 0, high);
    g.restore();
    g.fillStyle = style.getPropertyValue(colour);
    g.globalAlpha = 0.55;
    for (var r = 0; r < set.length / n; r++) {
      var a = set[r * n + x], b = set[r * n + y];
      if (a === 4095 || b === 4095) continue;
      g.beginPath();
      g.arc(left + a / 4094 * wide, top + (1 - b / 4094) * high, 1.5, 0, 7);
      g.fill();
      shown++;
    }
    g.globalAlpha = 1;
    if (marked && colour === '--data') {
      var row = d.worst[marked.row];
      g.strokeStyle = style.getPropertyValue('--mark');
      g.lineWidth = 2.5;
      g.beginPath();
      g.arc(Math.min(Math.max(px(row[x]), left), left + wide), Math.min(Math.max(py(row[y]), top), top + high), 6, 0, 7);
      g.stroke();
    }
    return shown;
  }
  function draw() {
    var style = getComputedStyle(document.documentElement), x = +menus[0].value, y = +menus[1].value;
    var counts = [paint(document.getElementById('canvas-data'), sets[0], x, y, style, '--data'),
      paint(document.getElementById('canvas-draws'), sets[1], x, y, style, '--model')];
    ['count-data', 'count-draws'].forEach(function (id, k) {
      var all = sets[k].length / n, out = all - counts[k];
      document.getElementById(id).textContent = all ? counts[k] + ' points' + (out ? ', ' + out + ' outside' : '') : 'none';
    });
    holder.setAttribute('data-drawn', x + ',' + y + ',' + (marked ? marked.row : ''));
  }
  Array.prototype.forEach.call(document.querySelectorAll('a[data-x]'), function (link) {
    link.addEventListener('click', function () {
      menus[0].value = link.getAttribute('data-x');
      menus[1].value = link.getAttribute('data-y');
      marked = link.hasAttribute('data-row') ? { row: +link.getAttribute('data-row') } : null;
      draw();
    });
  });
  document.documentElement.classList.add('live');
  draw();
  window.addEventListener('resize', draw);
  if (window.matchMedia) window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
})();
