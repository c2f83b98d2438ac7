-- What somebody does with a program in Neovim, and what is seen of it; written to the file RESULT as JSON. Works from Neovim 0.7 on.
local result = {}

-- Waits until something is so.
local function wait(what, is_so)
  if not vim.wait(60000, is_so, 20) then
    error('waited for ' .. what .. ' in vain')
  end
end

local function lines()
  return vim.api.nvim_buf_get_lines(0, 0, -1, false)
end

-- Puts the cursor on the first letter of a text.
local function go_to(text)
  for number, line in ipairs(lines()) do
    local at = line:find(text, 1, true)
    if at then
      vim.api.nvim_win_set_cursor(0, { number, at - 1 })
      return
    end
  end
  error('there is no ' .. text)
end

-- Asks the server about the place of the cursor.
local function ask(method, change)
  local params = vim.lsp.util.make_position_params(0, 'utf-16')
  if change then
    change(params)
  end
  local answers = vim.lsp.buf_request_sync(0, method, params, 60000)
  for _, answer in pairs(assert(answers, method .. ' is not answered')) do
    assert(not answer.error, vim.inspect(answer.error))
    return answer.result
  end
end

local function found()
  local told = {}
  for _, one in ipairs(vim.diagnostic.get(0)) do
    table.insert(told, {
      code = one.code or one.user_data and one.user_data.lsp and one.user_data.lsp.code,
      line = one.lnum + 1,
      column = one.col,
      severity = one.severity,
      message = one.message,
    })
  end
  table.sort(told, function(a, b) return a.line < b.line end)
  return told
end

local function session()
  local client
  vim.api.nvim_create_autocmd('FileType', {
    pattern = 'mcl',
    callback = function(file)
      client = client or vim.lsp.start_client({
        name = 'setpoint',
        cmd = { vim.env.SETPOINT, 'lsp' },
        root_dir = vim.fn.getcwd(),
        on_exit = function(code) result.exit = code end,
      })
      vim.lsp.buf_attach_client(file.buf, client)
      vim.api.nvim_create_autocmd('BufWritePre', {
        buffer = file.buf,
        callback = function()
          if vim.lsp.buf.format then
            vim.lsp.buf.format()
          else
            vim.lsp.buf.formatting_sync(nil, 60000)
          end
        end,
      })
    end,
  })
  vim.cmd('edit main.mcl')
  result.filetype = vim.bo.filetype
  result.syntax = vim.fn.synIDattr(vim.fn.synID(1, 1, 1), 'name')

  -- What is wrong is shown, and is gone when it is mended.
  wait('diagnostics', function() return #vim.diagnostic.get(0) > 0 end)
  result.diagnostics = found()
  go_to('$prot')
  vim.cmd('normal! lciwport')
  wait('no diagnostics', function() return #vim.diagnostic.get(0) == 0 end)

  -- The window above the name.
  go_to('port}')
  vim.lsp.buf.hover()
  local window
  wait('the window of a hover', function()
    for _, id in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(id).relative ~= '' then
        window = id
        return true
      end
    end
  end)
  result.hover = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false)
  vim.api.nvim_win_close(window, true)

  -- To a definition in another file, and back.
  go_to('greet(')
  vim.lsp.buf.definition()
  wait('the other file', function() return vim.fn.expand('%:t') == 'library.mcl' end)
  result.definition = { vim.fn.expand('%:t'), vim.api.nvim_win_get_cursor(0)[1] }
  vim.cmd('edit main.mcl')

  -- Completion, and what it puts there.
  local before = lines()
  vim.api.nvim_buf_set_lines(0, -1, -1, false, { 'file "/tmp/other" {', '\tconte', '}' })
  vim.api.nvim_win_set_cursor(0, { #before + 2, 5 })
  local list = ask('textDocument/completion', function(params)
    params.position.character = 6
  end)
  result.completion = {}
  for _, item in ipairs(list.items or list) do
    table.insert(result.completion, item.label)
    if item.label == 'content' then
      vim.lsp.util.apply_text_edits({ item.textEdit }, vim.api.nvim_get_current_buf(), 'utf-16')
    end
  end
  result.completed = vim.list_slice(lines(), #before + 1)

  -- A change that the server offers.
  vim.api.nvim_buf_set_lines(0, #before, -1, false, { 'if $port == "80" {}' })
  wait('a warning', function() return #found() == 1 and found()[1].severity == vim.diagnostic.severity.WARN end)
  result.warnings = found()
  vim.api.nvim_win_set_cursor(0, { result.warnings[1].line, result.warnings[1].column })
  local actions = ask('textDocument/codeAction', function(params)
    params.range = { start = params.position, ['end'] = params.position }
    params.context = { diagnostics = {} }
  end)
  result.actions = {}
  for _, action in ipairs(actions) do
    table.insert(result.actions, action.title)
  end
  vim.api.nvim_buf_set_lines(0, #before, -1, false, {})

  -- A new name, in all places.
  go_to('port =')
  vim.lsp.buf.rename('number')
  wait('the new name', function() return table.concat(lines(), '\n'):find('${number}', 1, true) ~= nil end)
  result.renamed = lines()

  -- A save formats.
  vim.api.nvim_buf_set_lines(0, -1, -1, false, { 'print   "last"   {}' })
  vim.cmd('write')
  result.saved = vim.fn.readfile('main.mcl')

  vim.lsp.stop_client(client)
  wait('the end of the server', function() return result.exit ~= nil end)
end

local is_well, message = xpcall(session, debug.traceback)
if not is_well then
  result.failed = message
end
vim.fn.writefile({ vim.fn.json_encode(result) }, vim.env.RESULT)
vim.cmd('qa!')
