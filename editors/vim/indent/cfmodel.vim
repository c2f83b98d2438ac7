" Indentation of the model language: one step for each block and bracket that is open at the end of a line.
if exists('b:did_indent')
  finish
endif
let b:did_indent = 1

setlocal indentexpr=CfmodelIndent(v:lnum) indentkeys=0],0),0},!^F,o,O,=end,=elif,=else
let b:undo_indent = 'setlocal indentexpr< indentkeys<'

if exists('*CfmodelIndent')
  finish
endif

" A line without its texts and its comment.
function! s:code(number) abort
  let line = substitute(getline(a:number), '"\%([^"\\]\|\\.\)*"', '""', 'g')
  return substitute(line, '#.*$', '', '')
endfunction

function! CfmodelIndent(number) abort
  let before = prevnonblank(a:number - 1)
  if before == 0
    return 0
  endif
  let steps = s:code(before) =~# '[\[({:]\s*$'
  let steps -= s:code(a:number) =~# '^\s*\%([\])}]\|\%(end\|elif\|else\)\>\)'
  return max([0, indent(before) + steps * shiftwidth()])
endfunction
