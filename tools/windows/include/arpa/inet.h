/*
 * inet.h - addresses as text, for Windows
 */
#include <winsock2.h>
#include <ws2tcpip.h>

int inet_aton(const char *text, struct in_addr *out);
