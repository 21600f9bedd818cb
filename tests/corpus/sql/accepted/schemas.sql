-- purpose: schema
CREATE TABLE t (id INTEGER PRIMARY KEY)
-- ----
-- purpose: schema
CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL);
-- ----
-- purpose: schema
CREATE TABLE main.t (id INT);
-- ----
-- purpose: schema
CREATE TABLE t (a, b, c);
-- ----
-- purpose: schema
CREATE TABLE t (a TEXT NOT NULL ON CONFLICT IGNORE, b INT UNIQUE ON CONFLICT REPLACE, c INT PRIMARY KEY ON CONFLICT ROLLBACK);
-- ----
-- purpose: schema
CREATE TABLE t (a INT CHECK (a > 0), b TEXT CHECK (length(b) < 10), CHECK (a < 100), CONSTRAINT named CHECK (b <> ''));
-- ----
-- purpose: schema
CREATE TABLE t (a INT DEFAULT 1, b TEXT DEFAULT 'x', c REAL DEFAULT -1.5, d INT DEFAULT +2, e TEXT DEFAULT CURRENT_TIMESTAMP, f INT DEFAULT (1 + 2), g DEFAULT NULL, h DEFAULT TRUE, i BLOB DEFAULT x'00');
-- ----
-- purpose: schema
CREATE TABLE t (a TEXT COLLATE NOCASE, b TEXT COLLATE RTRIM UNIQUE, c TEXT COLLATE "binary");
-- ----
-- purpose: schema
CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (a + 1) STORED, c INT AS (a * 2), d INT AS (a) VIRTUAL, e AS (b || c));
-- ----
-- purpose: schema
CREATE TABLE t (a VARCHAR(255), b DECIMAL(10, 2), c DOUBLE PRECISION, d UNSIGNED BIG INT, e "odd type", f NUMERIC(-1));
-- ----
-- purpose: schema
CREATE TABLE t (a INTEGER NOT NULL, b TEXT, c BLOB, d REAL, e ANY) STRICT;
-- ----
-- purpose: schema
CREATE TABLE t (a TEXT PRIMARY KEY, b) WITHOUT ROWID;
-- ----
-- purpose: schema
CREATE TABLE t (a TEXT PRIMARY KEY, b INT) STRICT, WITHOUT ROWID;
-- ----
-- purpose: schema
CREATE TABLE t (a TEXT PRIMARY KEY, b INT) without rowid, strict;
-- ----
-- purpose: schema
CREATE TABLE t (a INT, b INT, PRIMARY KEY (a, b), UNIQUE (b) ON CONFLICT ABORT);
-- ----
-- purpose: schema
CREATE TABLE t (a INT, b INT, PRIMARY KEY (a DESC, b COLLATE NOCASE ASC));
-- ----
-- purpose: schema
CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p INT REFERENCES p (id) ON DELETE CASCADE ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED);
-- ----
-- purpose: schema
CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p INT REFERENCES p ON DELETE SET DEFAULT ON UPDATE NO ACTION NOT DEFERRABLE INITIALLY IMMEDIATE);
-- ----
-- purpose: schema
CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p INT, CONSTRAINT fk FOREIGN KEY (p) REFERENCES p (id) MATCH FULL ON DELETE RESTRICT DEFERRABLE);
-- ----
-- purpose: schema
CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p INT NOT NULL CONSTRAINT fk REFERENCES p (id) DEFERRABLE);
-- ----
-- purpose: schema
CREATE TABLE a (id INTEGER PRIMARY KEY, b INT REFERENCES b); CREATE TABLE b (id INTEGER PRIMARY KEY, a INT REFERENCES a);
-- ----
-- purpose: schema
CREATE TABLE t (a INT CONSTRAINT positive CHECK (a > 0) CONSTRAINT present NOT NULL);
-- ----
-- purpose: schema
CREATE TABLE t (a INT, b INT CONSTRAINT pk PRIMARY KEY, CONSTRAINT u UNIQUE (a), CONSTRAINT c CHECK (a IN (1, 2, 3)));
-- ----
-- purpose: schema
CREATE TABLE t (a INT, b INT, UNIQUE (a) CHECK (b > 0));
-- ----
-- purpose: schema
CREATE TABLE "my table" ("the id" INTEGER PRIMARY KEY, [key] TEXT, `value` TEXT, 'text' TEXT);
-- ----
-- purpose: schema
CREATE TABLE t (key TEXT, action INT, query TEXT, view TEXT, temp INT, row INT, of INT, "order" INT);
-- ----
-- purpose: schema
CREATE TABLE t (svc_column TEXT, sqlite_column TEXT, CONSTRAINT svc_named CHECK (svc_column <> ''));
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE INDEX i ON t (a);
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE UNIQUE INDEX IF NOT EXISTS i ON t (a DESC);
-- ----
-- purpose: schema
CREATE TABLE t (a, b); CREATE INDEX main.i ON t (a COLLATE NOCASE, b ASC);
-- ----
-- purpose: schema
CREATE TABLE t (a, b); CREATE INDEX i ON t (lower(a), b + 1) WHERE b IS NOT NULL AND a > 3;
-- ----
-- purpose: schema
CREATE TABLE t (a, doc); CREATE INDEX i ON t (doc ->> '$.kind', json_extract(doc, '$.x'));
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE VIEW v AS SELECT a FROM t;
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE VIEW IF NOT EXISTS main.v (x) AS SELECT a FROM main.t WHERE a > 1;
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE VIEW v AS WITH x AS (SELECT a FROM t) SELECT * FROM x UNION ALL VALUES (1);
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE VIEW v AS SELECT a, rank() OVER (ORDER BY a) AS place FROM t;
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE VIEW paid AS SELECT user_id, sum(amount) AS paid FROM svc_payments GROUP BY user_id;
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO t VALUES (1);
-- ----
-- purpose: schema
CREATE TABLE t (a, b); INSERT INTO t (a, b) VALUES (1, 'x;y'), (2, ':z');
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO t SELECT 1 UNION SELECT 2;
-- ----
-- purpose: schema
CREATE TABLE t (a); WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 5) INSERT INTO t SELECT i FROM n;
-- ----
-- purpose: schema
CREATE TABLE t (a UNIQUE); INSERT OR IGNORE INTO t VALUES (1), (1);
-- ----
-- purpose: schema
CREATE TABLE t (a UNIQUE); INSERT INTO t VALUES (1), (1) ON CONFLICT DO NOTHING;
-- ----
-- purpose: schema
CREATE TABLE t (a UNIQUE); INSERT INTO t VALUES (1), (1) ON CONFLICT (a) DO NOTHING;
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO t DEFAULT VALUES;
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO main.t VALUES (json('{"a":1}')), (datetime('now'));
-- ----
-- purpose: schema
CREATE TABLE t (a) ; ; CREATE TABLE u (b);;
-- ----
-- purpose: schema
CREATE TABLE t (id INTEGER PRIMARY KEY, path TEXT CHECK (path GLOB '/*' AND length(path) BETWEEN 1 AND 100 AND path NOT LIKE '%..%'));
-- ----
-- purpose: schema
CREATE TABLE t (status TEXT NOT NULL DEFAULT 'new' CHECK (status IN ('new', 'open', 'done')));
-- ----
-- purpose: schema
CREATE TABLE t (a INT, b INT AS (CASE WHEN a > 1 THEN 'x' ELSE 'y' END) STORED);
-- ----
-- purpose: schema
CREATE TABLE t (id TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(16)))), at INT NOT NULL DEFAULT (unixepoch()));
-- ----
-- purpose: schema
CREATE TABLE t (a TEXT GENERATED ALWAYS AS (json_extract(doc, '$.a')) VIRTUAL, doc TEXT CHECK (json_valid(doc)));
-- ----
-- purpose: schema
CREATE TABLE t (a INT NULL, b TEXT UNIQUE NOT NULL COLLATE NOCASE DEFAULT '');
-- ----
-- purpose: schema
CREATE TABLE t (a INT, b INT, c INT, UNIQUE (b, c), FOREIGN KEY (a, b) REFERENCES t (b, c) ON DELETE CASCADE);
-- ----
-- purpose: schema
CREATE TABLE t (a PRIMARY KEY DESC);
-- ----
-- purpose: schema
CREATE TABLE t (a INT PRIMARY KEY ASC ON CONFLICT FAIL);
-- ----
-- purpose: schema
-- The schema of a small shop; every line of it is a comment.
CREATE TABLE products (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL, -- shown; also :searched
  price INTEGER NOT NULL CHECK (price >= 0) /* in cents */
);

CREATE INDEX products_by_name ON products (name COLLATE NOCASE);

CREATE VIEW cheap (id, name) AS
  SELECT id, name FROM products WHERE price < 1000 ORDER BY price;

INSERT INTO products (name, price) VALUES
  ('Tea; green', 450),
  ('It''s coffee', 700);
-- ----
-- purpose: schema
CREATE TABLE t (c0 INT, c1 INT, c2 INT, c3 INT, c4 INT, c5 INT, c6 INT, c7 INT, c8 INT, c9 INT, c10 INT, c11 INT, c12 INT, c13 INT, c14 INT, c15 INT, c16 INT, c17 INT, c18 INT, c19 INT, c20 INT, c21 INT, c22 INT, c23 INT, c24 INT, c25 INT, c26 INT, c27 INT, c28 INT, c29 INT, c30 INT, c31 INT, c32 INT, c33 INT, c34 INT, c35 INT, c36 INT, c37 INT, c38 INT, c39 INT, c40 INT, c41 INT, c42 INT, c43 INT, c44 INT, c45 INT, c46 INT, c47 INT, c48 INT, c49 INT, c50 INT, c51 INT, c52 INT, c53 INT, c54 INT, c55 INT, c56 INT, c57 INT, c58 INT, c59 INT, c60 INT, c61 INT, c62 INT, c63 INT, c64 INT, c65 INT, c66 INT, c67 INT, c68 INT, c69 INT, c70 INT, c71 INT, c72 INT, c73 INT, c74 INT, c75 INT, c76 INT, c77 INT, c78 INT, c79 INT, c80 INT, c81 INT, c82 INT, c83 INT, c84 INT, c85 INT, c86 INT, c87 INT, c88 INT, c89 INT, c90 INT, c91 INT, c92 INT, c93 INT, c94 INT, c95 INT, c96 INT, c97 INT, c98 INT, c99 INT, c100 INT, c101 INT, c102 INT, c103 INT, c104 INT, c105 INT, c106 INT, c107 INT, c108 INT, c109 INT, c110 INT, c111 INT, c112 INT, c113 INT, c114 INT, c115 INT, c116 INT, c117 INT, c118 INT, c119 INT, c120 INT, c121 INT, c122 INT, c123 INT, c124 INT, c125 INT, c126 INT, c127 INT, c128 INT, c129 INT, c130 INT, c131 INT, c132 INT, c133 INT, c134 INT, c135 INT, c136 INT, c137 INT, c138 INT, c139 INT, c140 INT, c141 INT, c142 INT, c143 INT, c144 INT, c145 INT, c146 INT, c147 INT, c148 INT, c149 INT, c150 INT, c151 INT, c152 INT, c153 INT, c154 INT, c155 INT, c156 INT, c157 INT, c158 INT, c159 INT, c160 INT, c161 INT, c162 INT, c163 INT, c164 INT, c165 INT, c166 INT, c167 INT, c168 INT, c169 INT, c170 INT, c171 INT, c172 INT, c173 INT, c174 INT, c175 INT, c176 INT, c177 INT, c178 INT, c179 INT, c180 INT, c181 INT, c182 INT, c183 INT, c184 INT, c185 INT, c186 INT, c187 INT, c188 INT, c189 INT, c190 INT, c191 INT, c192 INT, c193 INT, c194 INT, c195 INT, c196 INT, c197 INT, c198 INT, c199 INT, c200 INT, c201 INT, c202 INT, c203 INT, c204 INT, c205 INT, c206 INT, c207 INT, c208 INT, c209 INT, c210 INT, c211 INT, c212 INT, c213 INT, c214 INT, c215 INT, c216 INT, c217 INT, c218 INT, c219 INT, c220 INT, c221 INT, c222 INT, c223 INT, c224 INT, c225 INT, c226 INT, c227 INT, c228 INT, c229 INT, c230 INT, c231 INT, c232 INT, c233 INT, c234 INT, c235 INT, c236 INT, c237 INT, c238 INT, c239 INT, c240 INT, c241 INT, c242 INT, c243 INT, c244 INT, c245 INT, c246 INT, c247 INT, c248 INT, c249 INT, c250 INT, c251 INT, c252 INT, c253 INT, c254 INT, c255 INT, c256 INT, c257 INT, c258 INT, c259 INT, c260 INT, c261 INT, c262 INT, c263 INT, c264 INT, c265 INT, c266 INT, c267 INT, c268 INT, c269 INT, c270 INT, c271 INT, c272 INT, c273 INT, c274 INT, c275 INT, c276 INT, c277 INT, c278 INT, c279 INT, c280 INT, c281 INT, c282 INT, c283 INT, c284 INT, c285 INT, c286 INT, c287 INT, c288 INT, c289 INT, c290 INT, c291 INT, c292 INT, c293 INT, c294 INT, c295 INT, c296 INT, c297 INT, c298 INT, c299 INT)
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO t VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15), (16), (17), (18), (19), (20), (21), (22), (23), (24), (25), (26), (27), (28), (29), (30), (31), (32), (33), (34), (35), (36), (37), (38), (39), (40), (41), (42), (43), (44), (45), (46), (47), (48), (49), (50), (51), (52), (53), (54), (55), (56), (57), (58), (59), (60), (61), (62), (63), (64), (65), (66), (67), (68), (69), (70), (71), (72), (73), (74), (75), (76), (77), (78), (79), (80), (81), (82), (83), (84), (85), (86), (87), (88), (89), (90), (91), (92), (93), (94), (95), (96), (97), (98), (99), (100), (101), (102), (103), (104), (105), (106), (107), (108), (109), (110), (111), (112), (113), (114), (115), (116), (117), (118), (119), (120), (121), (122), (123), (124), (125), (126), (127), (128), (129), (130), (131), (132), (133), (134), (135), (136), (137), (138), (139), (140), (141), (142), (143), (144), (145), (146), (147), (148), (149), (150), (151), (152), (153), (154), (155), (156), (157), (158), (159), (160), (161), (162), (163), (164), (165), (166), (167), (168), (169), (170), (171), (172), (173), (174), (175), (176), (177), (178), (179), (180), (181), (182), (183), (184), (185), (186), (187), (188), (189), (190), (191), (192), (193), (194), (195), (196), (197), (198), (199), (200), (201), (202), (203), (204), (205), (206), (207), (208), (209), (210), (211), (212), (213), (214), (215), (216), (217), (218), (219), (220), (221), (222), (223), (224), (225), (226), (227), (228), (229), (230), (231), (232), (233), (234), (235), (236), (237), (238), (239), (240), (241), (242), (243), (244), (245), (246), (247), (248), (249), (250), (251), (252), (253), (254), (255), (256), (257), (258), (259), (260), (261), (262), (263), (264), (265), (266), (267), (268), (269), (270), (271), (272), (273), (274), (275), (276), (277), (278), (279), (280), (281), (282), (283), (284), (285), (286), (287), (288), (289), (290), (291), (292), (293), (294), (295), (296), (297), (298), (299), (300), (301), (302), (303), (304), (305), (306), (307), (308), (309), (310), (311), (312), (313), (314), (315), (316), (317), (318), (319), (320), (321), (322), (323), (324), (325), (326), (327), (328), (329), (330), (331), (332), (333), (334), (335), (336), (337), (338), (339), (340), (341), (342), (343), (344), (345), (346), (347), (348), (349), (350), (351), (352), (353), (354), (355), (356), (357), (358), (359), (360), (361), (362), (363), (364), (365), (366), (367), (368), (369), (370), (371), (372), (373), (374), (375), (376), (377), (378), (379), (380), (381), (382), (383), (384), (385), (386), (387), (388), (389), (390), (391), (392), (393), (394), (395), (396), (397), (398), (399), (400), (401), (402), (403), (404), (405), (406), (407), (408), (409), (410), (411), (412), (413), (414), (415), (416), (417), (418), (419), (420), (421), (422), (423), (424), (425), (426), (427), (428), (429), (430), (431), (432), (433), (434), (435), (436), (437), (438), (439), (440), (441), (442), (443), (444), (445), (446), (447), (448), (449), (450), (451), (452), (453), (454), (455), (456), (457), (458), (459), (460), (461), (462), (463), (464), (465), (466), (467), (468), (469), (470), (471), (472), (473), (474), (475), (476), (477), (478), (479), (480), (481), (482), (483), (484), (485), (486), (487), (488), (489), (490), (491), (492), (493), (494), (495), (496), (497), (498), (499), (500), (501), (502), (503), (504), (505), (506), (507), (508), (509), (510), (511), (512), (513), (514), (515), (516), (517), (518), (519), (520), (521), (522), (523), (524), (525), (526), (527), (528), (529), (530), (531), (532), (533), (534), (535), (536), (537), (538), (539), (540), (541), (542), (543), (544), (545), (546), (547), (548), (549), (550), (551), (552), (553), (554), (555), (556), (557), (558), (559), (560), (561), (562), (563), (564), (565), (566), (567), (568), (569), (570), (571), (572), (573), (574), (575), (576), (577), (578), (579), (580), (581), (582), (583), (584), (585), (586), (587), (588), (589), (590), (591), (592), (593), (594), (595), (596), (597), (598), (599), (600), (601), (602), (603), (604), (605), (606), (607), (608), (609), (610), (611), (612), (613), (614), (615), (616), (617), (618), (619), (620), (621), (622), (623), (624), (625), (626), (627), (628), (629), (630), (631), (632), (633), (634), (635), (636), (637), (638), (639), (640), (641), (642), (643), (644), (645), (646), (647), (648), (649), (650), (651), (652), (653), (654), (655), (656), (657), (658), (659), (660), (661), (662), (663), (664), (665), (666), (667), (668), (669), (670), (671), (672), (673), (674), (675), (676), (677), (678), (679), (680), (681), (682), (683), (684), (685), (686), (687), (688), (689), (690), (691), (692), (693), (694), (695), (696), (697), (698), (699), (700), (701), (702), (703), (704), (705), (706), (707), (708), (709), (710), (711), (712), (713), (714), (715), (716), (717), (718), (719), (720), (721), (722), (723), (724), (725), (726), (727), (728), (729), (730), (731), (732), (733), (734), (735), (736), (737), (738), (739), (740), (741), (742), (743), (744), (745), (746), (747), (748), (749), (750), (751), (752), (753), (754), (755), (756), (757), (758), (759), (760), (761), (762), (763), (764), (765), (766), (767), (768), (769), (770), (771), (772), (773), (774), (775), (776), (777), (778), (779), (780), (781), (782), (783), (784), (785), (786), (787), (788), (789), (790), (791), (792), (793), (794), (795), (796), (797), (798), (799), (800), (801), (802), (803), (804), (805), (806), (807), (808), (809), (810), (811), (812), (813), (814), (815), (816), (817), (818), (819), (820), (821), (822), (823), (824), (825), (826), (827), (828), (829), (830), (831), (832), (833), (834), (835), (836), (837), (838), (839), (840), (841), (842), (843), (844), (845), (846), (847), (848), (849), (850), (851), (852), (853), (854), (855), (856), (857), (858), (859), (860), (861), (862), (863), (864), (865), (866), (867), (868), (869), (870), (871), (872), (873), (874), (875), (876), (877), (878), (879), (880), (881), (882), (883), (884), (885), (886), (887), (888), (889), (890), (891), (892), (893), (894), (895), (896), (897), (898), (899), (900), (901), (902), (903), (904), (905), (906), (907), (908), (909), (910), (911), (912), (913), (914), (915), (916), (917), (918), (919), (920), (921), (922), (923), (924), (925), (926), (927), (928), (929), (930), (931), (932), (933), (934), (935), (936), (937), (938), (939), (940), (941), (942), (943), (944), (945), (946), (947), (948), (949), (950), (951), (952), (953), (954), (955), (956), (957), (958), (959), (960), (961), (962), (963), (964), (965), (966), (967), (968), (969), (970), (971), (972), (973), (974), (975), (976), (977), (978), (979), (980), (981), (982), (983), (984), (985), (986), (987), (988), (989), (990), (991), (992), (993), (994), (995), (996), (997), (998), (999), (1000), (1001), (1002), (1003), (1004), (1005), (1006), (1007), (1008), (1009), (1010), (1011), (1012), (1013), (1014), (1015), (1016), (1017), (1018), (1019), (1020), (1021), (1022), (1023), (1024), (1025), (1026), (1027), (1028), (1029), (1030), (1031), (1032), (1033), (1034), (1035), (1036), (1037), (1038), (1039), (1040), (1041), (1042), (1043), (1044), (1045), (1046), (1047), (1048), (1049), (1050), (1051), (1052), (1053), (1054), (1055), (1056), (1057), (1058), (1059), (1060), (1061), (1062), (1063), (1064), (1065), (1066), (1067), (1068), (1069), (1070), (1071), (1072), (1073), (1074), (1075), (1076), (1077), (1078), (1079), (1080), (1081), (1082), (1083), (1084), (1085), (1086), (1087), (1088), (1089), (1090), (1091), (1092), (1093), (1094), (1095), (1096), (1097), (1098), (1099), (1100), (1101), (1102), (1103), (1104), (1105), (1106), (1107), (1108), (1109), (1110), (1111), (1112), (1113), (1114), (1115), (1116), (1117), (1118), (1119), (1120), (1121), (1122), (1123), (1124), (1125), (1126), (1127), (1128), (1129), (1130), (1131), (1132), (1133), (1134), (1135), (1136), (1137), (1138), (1139), (1140), (1141), (1142), (1143), (1144), (1145), (1146), (1147), (1148), (1149), (1150), (1151), (1152), (1153), (1154), (1155), (1156), (1157), (1158), (1159), (1160), (1161), (1162), (1163), (1164), (1165), (1166), (1167), (1168), (1169), (1170), (1171), (1172), (1173), (1174), (1175), (1176), (1177), (1178), (1179), (1180), (1181), (1182), (1183), (1184), (1185), (1186), (1187), (1188), (1189), (1190), (1191), (1192), (1193), (1194), (1195), (1196), (1197), (1198), (1199), (1200), (1201), (1202), (1203), (1204), (1205), (1206), (1207), (1208), (1209), (1210), (1211), (1212), (1213), (1214), (1215), (1216), (1217), (1218), (1219), (1220), (1221), (1222), (1223), (1224), (1225), (1226), (1227), (1228), (1229), (1230), (1231), (1232), (1233), (1234), (1235), (1236), (1237), (1238), (1239), (1240), (1241), (1242), (1243), (1244), (1245), (1246), (1247), (1248), (1249), (1250), (1251), (1252), (1253), (1254), (1255), (1256), (1257), (1258), (1259), (1260), (1261), (1262), (1263), (1264), (1265), (1266), (1267), (1268), (1269), (1270), (1271), (1272), (1273), (1274), (1275), (1276), (1277), (1278), (1279), (1280), (1281), (1282), (1283), (1284), (1285), (1286), (1287), (1288), (1289), (1290), (1291), (1292), (1293), (1294), (1295), (1296), (1297), (1298), (1299), (1300), (1301), (1302), (1303), (1304), (1305), (1306), (1307), (1308), (1309), (1310), (1311), (1312), (1313), (1314), (1315), (1316), (1317), (1318), (1319), (1320), (1321), (1322), (1323), (1324), (1325), (1326), (1327), (1328), (1329), (1330), (1331), (1332), (1333), (1334), (1335), (1336), (1337), (1338), (1339), (1340), (1341), (1342), (1343), (1344), (1345), (1346), (1347), (1348), (1349), (1350), (1351), (1352), (1353), (1354), (1355), (1356), (1357), (1358), (1359), (1360), (1361), (1362), (1363), (1364), (1365), (1366), (1367), (1368), (1369), (1370), (1371), (1372), (1373), (1374), (1375), (1376), (1377), (1378), (1379), (1380), (1381), (1382), (1383), (1384), (1385), (1386), (1387), (1388), (1389), (1390), (1391), (1392), (1393), (1394), (1395), (1396), (1397), (1398), (1399), (1400), (1401), (1402), (1403), (1404), (1405), (1406), (1407), (1408), (1409), (1410), (1411), (1412), (1413), (1414), (1415), (1416), (1417), (1418), (1419), (1420), (1421), (1422), (1423), (1424), (1425), (1426), (1427), (1428), (1429), (1430), (1431), (1432), (1433), (1434), (1435), (1436), (1437), (1438), (1439), (1440), (1441), (1442), (1443), (1444), (1445), (1446), (1447), (1448), (1449), (1450), (1451), (1452), (1453), (1454), (1455), (1456), (1457), (1458), (1459), (1460), (1461), (1462), (1463), (1464), (1465), (1466), (1467), (1468), (1469), (1470), (1471), (1472), (1473), (1474), (1475), (1476), (1477), (1478), (1479), (1480), (1481), (1482), (1483), (1484), (1485), (1486), (1487), (1488), (1489), (1490), (1491), (1492), (1493), (1494), (1495), (1496), (1497), (1498), (1499)
-- ----
-- purpose: schema
CREATE TABLE t (a CHECK (date(a) IS a), b DEFAULT (date('now')), c AS (strftime('%Y', a, 'start of year')), d CHECK (d <= CURRENT_TIMESTAMP));
-- ----
-- purpose: schema
CREATE TABLE t (a CHECK (a <> 'now'), b CHECK (b IN ('utc', 'localtime')), c CHECK (lower(c) <> upper('now'))); CREATE INDEX i ON t (date(a)); INSERT INTO t SELECT date('now'), 'utc', 'c';
