#include "cli.h"
static int r(int a,char**b){(void)a;(void)b;return 0;}
const cli_command cli_info={"info","","","",0,0,0,r}; const cli_command cli_paper={"paper","","","",0,0,0,r};
