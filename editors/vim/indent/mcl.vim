" Indentation of the language mcl: one tab for each bracket that is open at the end of a line.
if exists('b:did_indent')
  finish
endif
let b:did_indent = 1

setlocal indentexpr=MclIndent(v:lnum) indentkeys=0{,0},0],0),!^F,o,O
let b:undo_indent = 'setlocal indentexpr< indentkeys<'

if exists('*MclIndent')
  finish
endif

" A line without its strings and its comment.
function! s:code(number) abort
  let line = substitute(getline(a:number), '"\%([^"\\]\|\\.\)*"', '""', 'g')
  return substitute(line, '#.*$', '', '')
endfunction

function! MclIndent(number) abort
  let before = prevnonblank(a:number - 1)
  if before == 0
    return 0
  endif
  let width = shiftwidth()
  let steps = s:code(before) =~# '[\[({]\s*$'
  let steps -= s:code(a:number) =~# '^\s*[\])}]'
  return max([0, indent(before) + steps * width])
endfunction
