'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const kOutcomes = {
    passed: ['P', 'passed'],
    expected: ['X', 'refused as expected'],
    refused: ['R', 'refused'],
    failed: ['F', 'failed'],
    error: ['E', 'toolchain or machine'],
    crashed: ['C', 'crashed'],
    timeout: ['T', 'over the time limit'],
    'not run': ['N', 'not run'],
  };
  const byId = (id) => document.getElementById(id);

  // make('p', {class: 'quiet'}, 'text', child): every text is a text node, never markup.
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === 'click') element.addEventListener('click', value);
      else if (value !== undefined) element.setAttribute(name, value);
    }
    for (const child of children) if (child !== null && child !== undefined) element.append(child);
    return element;
  }
  const tile = (outcome) =>
    make('span', {class: 'tile ' + styleOf(outcome), 'aria-hidden': 'true'}, kOutcomes[outcome][0]);
  const styleOf = (outcome) => 'o-' + outcome.replace(' ', '-');
  const unquoted = (text) => text.replace(/^"(.*)"$/, '$1');
  const axisName = (axis) => axis.names.join(', ');
  const choiceText = (axis, choice) => axis.values[choice].map(unquoted).join(', ');
  const secondsText = (seconds) => seconds >= 90 ? (seconds / 60).toFixed(1) + ' min' : seconds.toFixed(1) + ' s';

  const state = {
    hiddenOutcomes: new Set(),
    hiddenChoices: data.axes.map(() => new Set()),
    row: 0, column: -1, cell: null,
  };
  // The longest axis goes down the page, the next one across; keys that vary together make wide headings,
  // so they come last.
  const bySize = data.axes.map((axis, i) => i).sort((a, b) => (data.axes[a].keys.length > 1) - (data.axes[b].keys.length > 1) ||
    data.axes[b].values.length - data.axes[a].values.length || a - b);
  state.row = bySize[0];
  state.column = bySize.length > 1 ? bySize[1] : -1;

  const isShown = (cell) => !state.hiddenOutcomes.has(cell.outcome) &&
    cell.choices.every((choice, axis) => !state.hiddenChoices[axis].has(choice));

  function showHeader() {
    byId('title').textContent = 'Matrix ' + data.matrix;
    const parts = Object.entries(data.counts).filter(([, count]) => count > 0)
      .map(([outcome, count]) => count + ' ' + kOutcomes[outcome][1]);
    byId('verdict').textContent = data.cells.length + (data.cells.length === 1 ? ' cell: ' : ' cells: ') + parts.join(', ');
    byId('verdict').className = data.ok ? 'good' : 'bad';
    const kept = data.cells.filter((cell) => cell.kept).length;
    const times = data.cell_times;
    byId('about').textContent = [
      'ran ' + secondsText(data.seconds),
      times ? 'a cell ' + secondsText(times.median_seconds) + ' at the median (' + secondsText(times.median_cpu_seconds) + ' of CPU time), ' + secondsText(times.most_seconds) + ' at most (cell ' + times.slowest + ')' : null,
      kept ? kept + ' kept from an earlier run' : null,
      data.interrupted ? 'interrupted' : null,
      'afdep-gen ' + data.tool,
    ].filter(Boolean).join(' \u00b7 ');
  }

  function chip(label, pressed, toggle, ...before) {
    const button = make('button', {class: 'chip', type: 'button', 'aria-pressed': String(pressed), click: () => {
      const now = button.getAttribute('aria-pressed') !== 'true';
      button.setAttribute('aria-pressed', String(now));
      toggle(now);
      showGrid();
    }}, ...before, label);
    return button;
  }
  const toggleIn = (set, value) => (shown) => { if (shown) set.delete(value); else set.add(value); };

  function showFilters() {
    for (const [outcome, count] of Object.entries(data.counts)) {
      if (count === 0) continue;
      byId('outcomes').append(chip(kOutcomes[outcome][1] + ' (' + count + ')', true,
        toggleIn(state.hiddenOutcomes, outcome), tile(outcome)));
    }
    data.axes.forEach((axis, i) => {
      if (axis.values.length < 2) return;
      byId('axes').append(make('div', {class: 'filter'}, make('span', {class: 'name'}, axisName(axis)),
        ...axis.values.map((_, choice) => chip(choiceText(axis, choice), true, toggleIn(state.hiddenChoices[i], choice)))));
    });
    if (data.axes.length > 1) {
      for (const [label, field, other] of [['Rows', 'row', 'column'], ['Columns', 'column', 'row']]) {
        const select = make('select', {'aria-label': label});
        data.axes.forEach((axis, i) => select.append(make('option', {value: i}, axisName(axis))));
        select.value = state[field];
        select.dataset.field = field;
        select.addEventListener('change', () => {
          const chosen = Number(select.value);
          if (chosen === state[other]) state[other] = state[field];
          state[field] = chosen;
          for (const each of byId('layout').querySelectorAll('select')) each.value = state[each.dataset.field];
          showGrid();
        });
        byId('layout').append(make('label', {}, label + ' ', select));
      }
    }
    if (window.matchMedia('(min-width: 861px)').matches) byId('axes-filter').open = true;
  }

  // Cells by the choices of the axes that are neither rows nor columns, in the order of the cells.
  function sections() {
    const found = new Map();
    for (const cell of data.cells) {
      const rest = cell.choices.map((choice, axis) => axis === state.row || axis === state.column ? '-' : choice).join(' ');
      if (!found.has(rest)) found.set(rest, []);
      found.get(rest).push(cell);
    }
    return [...found.values()].filter((cells) => cells.some(isShown));
  }

  function sectionTitle(cell) {
    const title = make('h2', {});
    data.axes.forEach((axis, i) => {
      if (i === state.row || i === state.column || axis.values.length < 2) return;
      if (title.childNodes.length) title.append(' \u00b7 ');
      title.append(make('span', {class: 'key'}, axisName(axis) + ' '), choiceText(axis, cell.choices[i]));
    });
    return title.childNodes.length ? title : null;
  }

  function cellButton(cell) {
    const text = 'Cell ' + cell.number + ': ' + cell.label + ', ' + kOutcomes[cell.outcome][1];
    return make('button', {
      class: 'tile ' + styleOf(cell.outcome) + (isShown(cell) ? '' : ' hidden'), type: 'button', title: text,
      'aria-label': text, 'aria-current': String(cell === state.cell), 'data-number': cell.number,
      click: () => select(cell, true),
    }, kOutcomes[cell.outcome][0]);
  }

  function sectionTable(cells) {
    const rowAxis = data.axes[state.row];
    const columnAxis = state.column < 0 ? null : data.axes[state.column];
    const kept = (axis, i) => axis.values.map((_, choice) => choice).filter((choice) => !state.hiddenChoices[i].has(choice));
    const rows = kept(rowAxis, state.row);
    const columns = columnAxis ? kept(columnAxis, state.column) : [0];
    const at = new Map(cells.map((cell) => [cell.choices[state.row] + ' ' + (columnAxis ? cell.choices[state.column] : 0), cell]));
    const head = make('thead', {});
    if (columnAxis) {
      head.append(make('tr', {}, make('th', {class: 'row'}), make('th', {class: 'axis', colspan: columns.length}, axisName(columnAxis))));
    }
    head.append(make('tr', {}, make('th', {class: 'row axis'}, axisName(rowAxis)),
      ...columns.map((column) => make('th', {scope: 'col'}, columnAxis ? choiceText(columnAxis, column) : ''))));
    const table = make('table', {class: 'cells'}, head);
    const body = make('tbody', {});
    for (const row of rows) {
      body.append(make('tr', {}, make('th', {class: 'row', scope: 'row'}, choiceText(rowAxis, row)), ...columns.map((column) => {
        const cell = at.get(row + ' ' + column);
        return make('td', {}, cell ? cellButton(cell) : null);
      })));
    }
    table.append(body);
    return table;
  }

  function showGrid() {
    const shown = data.cells.filter(isShown).length;
    byId('shown-count').textContent = shown === data.cells.length ? '' : '(' + shown + ' of ' + data.cells.length + ' cells shown)';
    const all = sections();
    byId('grid').replaceChildren(...all.map((cells) => make('div', {class: 'section'}, sectionTitle(cells[0]),
      make('div', {class: 'scroll'}, sectionTable(cells)))));
    if (all.length === 0) byId('grid').append(make('p', {class: 'quiet'}, 'No cell is left by the filters.'));
  }

  function factsTable(facts) {
    return make('table', {class: 'facts'}, make('tbody', {}, ...facts.map((fact) =>
      make('tr', {}, make('th', {scope: 'row'}, breakable(fact.name)), make('td', {}, breakable(fact.value))))));
  }

  function differences(cell) {
    const body = make('tbody', {});
    data.axes.forEach((axis, i) => axis.keys.forEach((key, k) => {
      const base = axis.base[k];
      const here = axis.values[cell.choices[i]][k];
      const same = base !== null && unquoted(base) === unquoted(here);
      body.append(make('tr', same ? {class: 'same'} : {}, make('td', {}, make('code', {}, breakable(key))),
        make('td', {}, base === null ? make('span', {class: 'quiet'}, 'not given') : make('code', {}, breakable(base))),
        make('td', {}, same ? 'as the base' : make('code', {}, breakable(here)))));
    }));
    return make('table', {class: 'facts'}, make('thead', {}, make('tr', {}, ...['Key', 'Base', 'This cell'].map((text) =>
      make('th', {scope: 'col'}, text)))), body);
  }

  // Long names break behind a dot, an underscore or a slash before a word, not inside one.
  function breakable(text) {
    const pieces = document.createDocumentFragment();
    for (const piece of text.split(/(?<=[._/])(?=[A-Za-z]{4})/)) {
      if (pieces.childNodes.length) pieces.append(make('wbr', {}));
      pieces.append(piece);
    }
    return pieces;
  }

  // The lines behind the first of a report: who did what, each on a line of its own; the rest of a long one on demand.
  const kLinesShown = 8;
  function traceLines(lines) {
    const rows = (part) => make('div', {class: 'lines'}, ...part.map((line) => make('div', {}, breakable(line.trim()))));
    if (lines.length <= kLinesShown + 2) return rows(lines);
    return make('div', {}, rows(lines.slice(0, kLinesShown)), make('details', {},
      make('summary', {}, (lines.length - kLinesShown) + ' more lines'), rows(lines.slice(kLinesShown))));
  }

  // "repeat: COMMAND" is a command to copy.
  function noteBlock(note) {
    const command = /^repeat: (.*)$/s.exec(note);
    return command ? make('div', {class: 'repeat'}, make('span', {class: 'quiet'}, 'Repeat'), make('pre', {}, command[1]))
      : make('div', {}, breakable(note));
  }

  function errorBlock(error, expected) {
    const place = error.file ? error.file + (error.line ? ':' + error.line + ':' + error.column : '') : null;
    const [first, ...rest] = error.message.split('\n');
    return make('div', {class: 'error' + (expected ? ' expected' : '')}, make('b', {}, error.code + ' '), breakable(first),
      rest.length ? traceLines(rest) : null, error.note ? noteBlock(error.note) : null,
      place ? make('div', {class: 'quiet'}, breakable(place)) : null);
  }

  function picture(cell) {
    const box = make('div', {class: 'picture', tabindex: '0', 'aria-label': 'The exchange of the first bucket'});
    box.innerHTML = data.pictures[cell.picture];
    return box;
  }

  function enlarge(cell) {
    const dialog = make('dialog', {'aria-label': 'Cell ' + cell.number},
      make('button', {class: 'chip', type: 'button', click: () => dialog.close()}, 'Close'), picture(cell));
    dialog.addEventListener('close', () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }

  function showDetail() {
    const panel = byId('detail');
    const cell = state.cell;
    if (!cell) {
      panel.replaceChildren(make('p', {class: 'quiet'}, 'Choose a cell to see its spec, plan and results.'));
      return;
    }
    const parts = [];
    const index = data.cells.indexOf(cell);
    const step = (text, label, other) => make('button', {class: 'chip', type: 'button', 'aria-label': label,
      disabled: other ? undefined : '', click: () => select(other, false)}, text);
    const toGrid = make('button', {class: 'chip narrow', type: 'button', click: () => byId('grid').scrollIntoView({behavior: 'smooth'})}, 'Grid');
    parts.push(make('div', {class: 'steps'}, toGrid, step('\u2039', 'Previous cell', data.cells[index - 1]), step('\u203a', 'Next cell', data.cells[index + 1])));
    parts.push(make('h2', {}, tile(cell.outcome), 'Cell ' + cell.number + ': ' + kOutcomes[cell.outcome][1]));
    const took = cell.seconds > 0 ? secondsText(cell.seconds) : cell.outcome === 'not run' ? 'not run' : 'not executed';
    parts.push(make('p', {class: 'quiet'}, took + (cell.kept ? ', in an earlier run' : '') +
      (cell.expected ? ' \u00b7 the matrix expects ' + cell.expected : '')));
    for (const error of cell.errors) parts.push(errorBlock(error, cell.outcome === 'expected'));
    if (cell.trace) parts.push(make('h3', {}, 'Trace'), make('pre', {}, cell.trace));
    parts.push(make('h3', {}, 'Against the base'), differences(cell));
    if (cell.verified.length) parts.push(make('h3', {}, 'Verified on the emulator'), factsTable(cell.verified));
    if (cell.ledger.length) parts.push(make('h3', {}, 'Ledger: what crossed, as the plan says'), factsTable(cell.ledger));
    if (cell.figures.length) parts.push(make('h3', {}, 'Plan'), factsTable(cell.figures));
    if (cell.picture !== undefined) {
      parts.push(make('h3', {}, 'Exchange of the first bucket'), picture(cell),
        make('button', {class: 'chip', type: 'button', click: () => enlarge(cell)}, 'Enlarge'));
    }
    if (cell.spec) {
      parts.push(make('details', {}, make('summary', {}, 'Spec', make('span', {}, ' digest ' + cell.digest.slice(0, 12))), make('pre', {}, cell.spec)));
    }
    panel.replaceChildren(...parts);
    panel.scrollTop = 0;
  }

  function select(cell, bring) {
    if (!cell) return;
    state.cell = cell;
    history.replaceState(null, '', '#cell-' + cell.number);
    for (const button of document.querySelectorAll('button.tile')) {
      button.setAttribute('aria-current', String(Number(button.dataset.number) === cell.number));
    }
    showDetail();
    if (bring && window.matchMedia('(max-width: 860px)').matches) byId('detail').scrollIntoView({behavior: 'smooth'});
  }

  showHeader();
  showFilters();
  showGrid();
  const wanted = /^#cell-(\d+)$/.exec(location.hash);
  const first = data.cells.find((cell) => !['passed', 'expected'].includes(cell.outcome)) || data.cells[0];
  state.cell = (wanted && data.cells.find((cell) => cell.number === Number(wanted[1]))) || first || null;
  showGrid();
  showDetail();
})();
